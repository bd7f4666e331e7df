// SPDX-License-Identifier: Apache-2.0
// The times of a replay compared with the recorded times, by stage, collective and size class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/collective/size_class.h"
#include "traces/replay/replay_plan.h"

namespace dynamiccl {

// The calls of one stage, collective and size class. Times are in microseconds.
struct ReplayRow {
  ZeroStage stage = ZeroStage::kUnknown;  // as the program labelled it
  Collective collective = Collective::kAllReduce;
  SizeClass size_class;
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t recorded_calls = 0;  // calls that have a recorded duration
  double recorded_us = 0;       // sum over these calls
  double replayed_us = 0;       // sum over all calls
  // Time of one such call in a sweep, with the library's own choice and with the best config; -1: not known.
  double default_us = -1;
  double best_us = -1;
};

// `group_us[i]` is how long plan.groups[i] took. Calls of one group share its time by their bytes, since they
// ran together.
std::vector<ReplayRow> SummarizeReplay(const ReplayPlan& plan, const std::vector<double>& group_us);

// Returns a table for people, with a header line. Columns without a value in any row are left out; where only
// some rows have a value, the others show "-".
std::string FormatReplayRows(const std::vector<ReplayRow>& rows);

}  // namespace dynamiccl
