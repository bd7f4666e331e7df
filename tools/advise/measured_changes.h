// SPDX-License-Identifier: Apache-2.0
// Predicted beside measured: the trainer with each change and without, in turns, on this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/advise/advice.h"
#include "tools/zero/measured_arms.h"

namespace dynamiccl {

struct MeasuredChange {
  std::string what;
  double predicted_ratio = 1;  // of the step with the change to the one without
  double measured_ratio = 1;   // median of the rounds' ratios
  double least = 1, most = 1;  // of the rounds
  double step_ms = 0;          // median

  // (predicted - measured) / measured.
  double Error() const { return predicted_ratio / measured_ratio - 1; }
};

struct MeasuredAdvice {
  double step_ms = 0;  // of the unchanged job, median of the rounds
  double least = 0, most = 0;
  std::vector<MeasuredChange> changes;
};

// `options`: the trainer's, of the unchanged job. Each round runs the job unchanged and with every change
// once. The advice must be for the trainer.
Result<MeasuredAdvice> MeasureAdvice(TrainerRuns& runs, const std::vector<std::string>& options,
                                     const Advice& advice, int rounds,
                                     const std::function<void(const std::string&)>& say);

std::string FormatMeasured(const MeasuredAdvice& measured, const Advice& advice);

}  // namespace dynamiccl
