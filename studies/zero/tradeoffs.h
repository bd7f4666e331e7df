// SPDX-License-Identifier: Apache-2.0
// Each choice of the trainer's design against its alternative: what a step takes of time, memory and traffic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/zero/measured_arms.h"

namespace dynamiccl {

struct Tradeoff {
  std::string choice;
  TrainerArm without, with;  // `with` is what ZeRO or ZeRO-R does
};

struct TradeoffSettings {
  std::vector<std::string> options;  // of every run: model, data, steps
  std::string bucket_bytes;          // C_B, as --bucket-bytes takes it
  int rounds = 5;
};

// `folder`: where files may be left. With one rank nothing is divided: those that need more are left out.
std::vector<Tradeoff> Tradeoffs(const TradeoffSettings& settings, const std::string& folder, int ranks);

struct MeasuredTradeoff {
  std::string choice;
  MeasuredArm without, with;
};

// MeasureArms of all; equal arms of several choices are run once. `say` gets a line of progress.
Result<std::vector<MeasuredTradeoff>> MeasureTradeoffs(TrainerRuns& runs, const TradeoffSettings& settings,
                                                       const std::function<void(const std::string&)>& say);

std::string TradeoffTable(const std::vector<MeasuredTradeoff>& tradeoffs);
Json TradeoffsJson(const std::vector<MeasuredTradeoff>& tradeoffs);

}  // namespace dynamiccl
