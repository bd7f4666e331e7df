// SPDX-License-Identifier: Apache-2.0
// Each choice of the trainer's design against its alternative: what a step takes of time, memory and traffic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

// One side of a choice: the options that it is, beside those of all.
struct TradeoffArm {
  std::string name;
  std::vector<std::string> options;
};

struct Tradeoff {
  std::string choice;
  TradeoffArm without, with;  // `with` is what ZeRO or ZeRO-R does
};

struct TradeoffSettings {
  std::vector<std::string> options;  // of every run: model, data, steps
  std::string bucket_bytes;          // C_B, as --bucket-bytes takes it
  int rounds = 5;
};

// `folder`: where files may be left. With one rank nothing is divided: those that need more are left out.
std::vector<Tradeoff> Tradeoffs(const TradeoffSettings& settings, const std::string& folder, int ranks);

struct MeasuredArm {
  TradeoffArm arm;
  std::vector<double> step_ms;  // a round each: the median of its steps
  TrainerReport report;         // of the last round; bytes are the same in all

  double Median() const;
  double Least() const;
  double Most() const;
};

// Runs every arm once a round, each with `options` before its own, in an order that turns from round to
// round.
Status MeasureArms(TrainerRuns& runs, const std::vector<std::string>& options, int rounds,
                   std::vector<MeasuredArm>& arms, const std::function<void(const std::string&)>& say);

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
