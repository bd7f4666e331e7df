// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/step_watch.h"

#include <cmath>

namespace dynamiccl {

std::optional<double> StepWatch::Take(double log_ns, int64_t at_ns) {
  sum_ns_ += std::exp(log_ns);
  ++steps_;
  if (sum_ns_ < kLeastNs) return std::nullopt;
  TimedSample mean;
  mean.stream = 1;
  mean.at_ns = at_ns;
  mean.log_transfer = std::log(sum_ns_ / steps_);
  sum_ns_ = steps_ = 0;
  const auto change = detector_.Take(mean);
  return change ? std::optional(change->effect) : std::nullopt;
}

void StepWatch::Adopt(std::optional<double> effect) {
  if (effect)
    detector_.Expect(*effect);
  else
    detector_.Forget();
  sum_ns_ = steps_ = 0;
}

}  // namespace dynamiccl
