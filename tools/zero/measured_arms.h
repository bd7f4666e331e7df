// SPDX-License-Identifier: Apache-2.0
// Runs the trainer with different options, in turns, and measures the step time of each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/zero/trainer_runs.h"

namespace dynamiccl {

struct TrainerArm {
  std::string name;
  std::vector<std::string> options;  // in addition to the options of all arms
};

struct MeasuredArm {
  TrainerArm arm;
  std::vector<double> step_ms;  // one value for each round: the median of its steps
  TrainerReport report;         // report of the last round; byte counts are equal in all rounds

  double Median() const;
  double Least() const;
  double Most() const;
};

// Runs the trainer once with each arm in every round. An arm is a set of options; they are added after
// `options`, which all arms share. The order of the arms rotates from round to round.
Status MeasureArms(TrainerRuns& runs, const std::vector<std::string>& options, int rounds,
                   std::vector<MeasuredArm>& arms, const std::function<void(const std::string&)>& say);

}  // namespace dynamiccl
