// SPDX-License-Identifier: Apache-2.0
// Compares, for each (topology, collective, size) of a sweep, the library's default, a given choice and the
// best of the sweep.
//
// The best config is picked on the even repeats and timed on the odd ones. If the same repeats served both,
// the best would look faster than it is, because it was picked for its lucky times. Default and choice are
// timed on the odd repeats as well, so that all three are comparable.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/json_output.h"
#include "tools/report/timing.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// All rows of one (topology, collective, size). The rows belong to the file that CellsOf was given.
struct SweepCell {
  std::string topology;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  std::vector<const Measurement*> rows;  // pointers into the file that CellsOf was given
};

// The cells of `file` in the order of first appearance. `file` must outlive them.
std::vector<SweepCell> CellsOf(const MeasurementFile& file);

// A config and its times on the timing half of the repeats, in microseconds.
struct TimedConfig {
  CollectiveConfig config = kLeaveNcclAlone;
  Timing microseconds;
};

// The config that the library used by itself and its time. Repeats are 0 when the sweep did not measure the
// default.
TimedConfig DefaultOf(const SweepCell& cell);
// The fastest row of the cell, which may be the default. Repeats are 0 when the cell has no samples.
TimedConfig BestOf(const SweepCell& cell);
// The time of `choice`, which is the default's when the choice leaves NCCL alone. When its number of channels
// was not measured, or is left to NCCL (0), the row with the nearest number counts. Repeats are 0 when the
// algorithm and protocol were not measured.
TimedConfig ChoiceOf(const SweepCell& cell, const CollectiveConfig& choice);

// "Ring Simple x4", "Tree LL" (channels left to NCCL) or "left to NCCL".
std::string Name(const CollectiveConfig& config);

// Default and best of every cell (docs/formats/report.md, `measurements`).
Json CellsJson(const MeasurementFile& file);

// Selects the topology for functions that need exactly one. Returns `wanted`; where that is empty, the only
// topology of the cells. kInvalidArgument when no cell has that topology, or when `wanted` is empty and the
// cells have several; the message names `source`.
Result<std::string> OneTopology(const std::vector<SweepCell>& cells, const std::string& wanted,
                                const std::string& source);

}  // namespace dynamiccl
