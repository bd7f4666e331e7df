// SPDX-License-Identifier: Apache-2.0
// Measured times as cells of arms. A cell has the time of each way to run one collective of one size at one
// place, repeat by repeat. An arm is a forced config, a setting of the environment, or the library's own
// choice.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/cost_model/cost_model.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Published times (tools/calibration/timed_systems.h).
class TimedSystems;

// Name of the arm that is the library's own choice.
inline constexpr char kDefaultArm[] = "left to NCCL";

// Medians in microseconds of the even and of the odd repeats. They are the same if there is a single repeat.
struct ArmTime {
  double halves[2] = {0, 0};
  int repeats = 0;
};

// One collective of one size at one place.
struct ArmCell {
  // Topology of a sweep, or machine and release of published times.
  std::string system;
  // Set where a sweep states the fabric.
  std::optional<CostModelInput> model;
  Collective collective = Collective::kAllReduce;
  int n_ranks = 2;
  int n_nodes = 1;
  // NCCL's total bytes.
  uint64_t bytes = 0;
  // The arms by name; kDefaultArm is among them.
  std::map<std::string, ArmTime> arms;

  // Octaves by which the halves of one arm's repeats differ. The value is 1.4826 times the median over the
  // arms (the upper one of two), which is the standard deviation if the noise is normal. It is 0 if no arm
  // has two repeats.
  double Noise() const;
};

// Cells of a sweep with a default and at least one other arm.
std::vector<ArmCell> CellsOfSweep(const MeasurementFile& file);

// Cells of published times (tools/calibration/published_table.h). If an algorithm was forced, the open choice
// is the default. Settings of one machine and release ("MACHINE / RELEASE / SETTING") are arms of one cell.
// The setting that begins with "default" is the default, otherwise the first by name.
std::vector<ArmCell> CellsOfPublished(const TimedSystems& systems);

// Reads a sweep (.measurements) or published times; the file may be gzipped.
Result<std::vector<ArmCell>> ReadCells(const std::string& path);

}  // namespace dynamiccl
