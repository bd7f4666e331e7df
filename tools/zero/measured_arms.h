// SPDX-License-Identifier: Apache-2.0
// Runs of the trainer with different options, in turns, and what a step of each takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

struct TrainerArm {
  std::string name;
  std::vector<std::string> options;  // beside those of all arms
};

struct MeasuredArm {
  TrainerArm arm;
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

}  // namespace dynamiccl
