// SPDX-License-Identifier: Apache-2.0
// Each choice of the trainer's design compared with its alternative, by the time, memory and traffic of a
// step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/zero/measured_arms.h"

namespace dynamiccl {

// A choice and its two sides.
struct Tradeoff {
  std::string choice;
  // `with` is what ZeRO or ZeRO-R does.
  TrainerArm without, with;
};

// Settings that all runs share.
struct TradeoffSettings {
  // Options of every run: model, data, steps.
  std::vector<std::string> options;
  // The size of constant buckets (the ZeRO paper's C_B), as --bucket-bytes takes it.
  std::string bucket_bytes;
  int rounds = 5;
};

// All choices. Runs may leave files in `folder`. With one rank nothing is divided, so choices that need
// several ranks are left out.
std::vector<Tradeoff> Tradeoffs(const TradeoffSettings& settings, const std::string& folder, int ranks);

struct MeasuredTradeoff {
  std::string choice;
  MeasuredArm without, with;
};

// Measures all choices. Arms with equal options are run once. `say` receives a line of progress.
Result<std::vector<MeasuredTradeoff>> MeasureTradeoffs(TrainerRuns& runs, const TradeoffSettings& settings,
                                                       const std::function<void(const std::string&)>& say);

std::string TradeoffTable(const std::vector<MeasuredTradeoff>& tradeoffs);
Json TradeoffsJson(const std::vector<MeasuredTradeoff>& tradeoffs);

}  // namespace dynamiccl
