// SPDX-License-Identifier: Apache-2.0
// Measured times as cells of arms: for one collective of one size at one place, what each way to run it took,
// repeat by repeat. An arm is a forced config, a setting of the environment, or the library's own choice.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/cost_model/cost_model.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

class TimedSystems;

inline constexpr char kDefaultArm[] = "left to NCCL";

// Medians in microseconds of the even and of the odd repeats; the same where there is one repeat alone.
struct ArmTime {
  double halves[2] = {0, 0};
  int repeats = 0;
};

struct ArmCell {
  std::string system;                   // topology of a sweep, or machine and release of published times
  std::optional<CostModelInput> model;  // where a sweep states the fabric
  Collective collective = Collective::kAllReduce;
  int n_ranks = 2;
  int n_nodes = 1;
  uint64_t bytes = 0;                   // NCCL's total
  std::map<std::string, ArmTime> arms;  // kDefaultArm among them

  // Octaves by which halves of the repeats of one arm lie apart: 1.4826 times the median over the arms (the
  // larger one of two), which is a standard deviation where the noise is normal. 0: no arm has two repeats.
  double Noise() const;
};

// Cells with a default and at least one other arm.
std::vector<ArmCell> CellsOfSweep(const MeasurementFile& file);

// Published times (tools/calibration/published_table.h). Where an algorithm was forced, the open choice is
// the default. Settings of one machine and release ("MACHINE / RELEASE / SETTING") are arms of one cell; the
// one that begins with "default" is the default, without such a one the first by name.
std::vector<ArmCell> CellsOfPublished(const TimedSystems& systems);

// By the file's content; `path` may be packed by gzip.
Result<std::vector<ArmCell>> ReadCells(const std::string& path);

}  // namespace dynamiccl
