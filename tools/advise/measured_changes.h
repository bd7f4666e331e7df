// SPDX-License-Identifier: Apache-2.0
// Checks predicted step times: runs the trainer on this machine with and without each change, in turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/advise/advice.h"
#include "tools/zero/measured_arms.h"

namespace dynamiccl {

// One change, predicted and measured. A ratio is the step time with the change divided by the step time
// without it.
struct MeasuredChange {
  std::string what;
  // Ratio that the simulation predicts.
  double predicted_ratio = 1;
  // Median over the rounds of the measured ratio.
  double measured_ratio = 1;
  // Smallest and largest measured ratio of any round.
  double least = 1, most = 1;
  // Median step time with the change.
  double step_ms = 0;

  // (predicted - measured) / measured.
  double Error() const { return predicted_ratio / measured_ratio - 1; }
};

// The step time of the unchanged job (median, smallest and largest over the rounds), and all changes.
struct MeasuredAdvice {
  // Median step time of the unchanged job over the rounds, in milliseconds.
  double step_ms = 0;
  double least = 0, most = 0;
  std::vector<MeasuredChange> changes;
};

// Runs `rounds` rounds. Each round runs the unchanged job once and then the job with each change once.
// `options` are the trainer's command-line options for the unchanged job. The advice must be about the
// trainer. `say` receives one line about each run.
Result<MeasuredAdvice> MeasureAdvice(TrainerRuns& runs, const std::vector<std::string>& options,
                                     const Advice& advice, int rounds,
                                     const std::function<void(const std::string&)>& say);

// A Markdown table; errors above 10 % are in bold.
std::string FormatMeasured(const MeasuredAdvice& measured, const Advice& advice);

}  // namespace dynamiccl
