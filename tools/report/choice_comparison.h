// SPDX-License-Identifier: Apache-2.0
// Compares three configs for each topology, collective and size of a sweep: the library's default, a given
// choice, and the best of the sweep.
//
// The best config is picked on the repeats of even index and timed on those of odd index. If the same repeats
// served both, the best would look faster than it is, because it was picked for its lucky times. The default
// and the choice are timed on the repeats of odd index as well, so that all three are comparable.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/json_output.h"
#include "tools/report/timing.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// All measurements of one topology, collective and size. They belong to the file that was given to CellsOf.
struct SweepCell {
  std::string topology;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  std::vector<const Measurement*> rows;  // pointers into the file that CellsOf was given
};

// Groups the measurements of `file` by topology, collective and size, in the order of first appearance.
// `file` must outlive the result.
std::vector<SweepCell> CellsOf(const MeasurementFile& file);

// A config and its times in microseconds, from the half of the repeats that did not pick the best config.
struct TimedConfig {
  CollectiveConfig config = kLeaveNcclAlone;
  Timing microseconds;
};

// The config that the library used by itself, and its time. The number of repeats is 0 if the sweep did not
// measure the default.
TimedConfig DefaultOf(const SweepCell& cell);
// The fastest config of the cell, which may be the default, and its time. The number of repeats is 0 if the
// cell has no samples.
TimedConfig BestOf(const SweepCell& cell);
// The time of `choice`. If the choice leaves NCCL alone, this is the time of the default. If its number of
// channels was not measured, or is left to NCCL (0), the measurement with the nearest number counts. The
// number of repeats is 0 if the algorithm and protocol were not measured.
TimedConfig ChoiceOf(const SweepCell& cell, const CollectiveConfig& choice);

// The config as text: "Ring Simple x4", "Tree LL" (channels left to NCCL) or "left to NCCL".
std::string Name(const CollectiveConfig& config);

// A timing as JSON. Null if nothing was timed, so that 0 always means a measured 0.
Json TimingJson(const Timing& timing);
// The default and the best config for every topology, collective and size (docs/formats/report.md,
// `measurements`).
Json CellsJson(const MeasurementFile& file);

// Selects the topology for functions that need exactly one. Returns `wanted` or, if that is empty, the only
// topology in `cells`. The error is kInvalidArgument if no cell has that topology, or if `wanted` is empty
// and the cells have several. The message names `source`.
Result<std::string> OneTopology(const std::vector<SweepCell>& cells, const std::string& wanted,
                                const std::string& source);

}  // namespace dynamiccl
