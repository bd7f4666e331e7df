// SPDX-License-Identifier: Apache-2.0
// How long a replay took beside what was recorded, by stage, collective and size class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/collective/size_class.h"
#include "traces/replay/replay_plan.h"

namespace dynamiccl {

struct ReplayRow {
  ZeroStage stage = ZeroStage::kUnknown;  // the program's label
  Collective collective = Collective::kAllReduce;
  SizeClass size_class;
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t recorded_calls = 0;  // of them with a recorded duration
  double recorded_us = 0;       // sum over those
  double replayed_us = 0;       // sum over all
  double default_us = -1;  // of one call of this kind in a sweep, the library's own choice; -1: not known
  double best_us = -1;     // likewise with the best config
};

// `group_us[i]` is how long plan.groups[i] took; calls of one group share its time by their bytes.
std::vector<ReplayRow> SummarizeReplay(const ReplayPlan& plan, const std::vector<double>& group_us);

// A table for people, with a header line.
std::string FormatReplayRows(const std::vector<ReplayRow>& rows);

}  // namespace dynamiccl
