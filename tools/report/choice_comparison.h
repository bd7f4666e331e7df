// SPDX-License-Identifier: Apache-2.0
// For each (topology, collective, size) of a sweep: the library's default, a given choice, and the best of
// the sweep. The best is picked on the even repeats and timed on the odd ones, so that it is not flattered by
// luck; default and choice are timed on the odd repeats as well.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/report/json_output.h"
#include "tools/report/timing.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// All rows of one (topology, collective, size).
struct SweepCell {
  std::string topology;
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  std::vector<const Measurement*> rows;  // into the file that CellsOf was given
};

// In the order of first appearance. `file` must outlive the cells.
std::vector<SweepCell> CellsOf(const MeasurementFile& file);

struct TimedConfig {
  CollectiveConfig config = kLeaveNcclAlone;
  Timing microseconds;
};

// Repeats 0 when the sweep did not measure the default.
TimedConfig DefaultOf(const SweepCell& cell);
TimedConfig BestOf(const SweepCell& cell);
// The row of `choice`; of the default when the choice leaves NCCL alone. When the number of channels was not
// measured (or is left to NCCL, 0), the row of the nearest number. Repeats 0 when the algorithm and protocol
// were not measured.
TimedConfig ChoiceOf(const SweepCell& cell, const CollectiveConfig& choice);

// "Ring Simple x4", "Tree LL", "left to NCCL".
std::string Name(const CollectiveConfig& config);

// Default and best of every cell (docs/formats/report.md, `measurements`).
Json CellsJson(const MeasurementFile& file);

// Which topology of a measurement file counts where only one can.

// `wanted`, or where that is empty the only topology of the cells. kInvalidArgument: there is none of that
// name, or no only one; `source` stands in the message.
Result<std::string> OneTopology(const std::vector<SweepCell>& cells, const std::string& wanted,
                                const std::string& source);

}  // namespace dynamiccl
