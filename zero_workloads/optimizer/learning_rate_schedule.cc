// SPDX-License-Identifier: Apache-2.0
// GPT-3's schedule (Brown et al. 2020, appendix B), with warm-up in steps instead of tokens.
#include "zero_workloads/optimizer/learning_rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dynamiccl::zero {

double LearningRateSchedule::At(int64_t step) const {
  // The final learning rate as a share of the peak, as in GPT-3 (Brown et al. 2020, appendix B).
  constexpr double kFinalShare = 0.1;
  if (step < warmup_steps) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const double length = static_cast<double>(std::max<int64_t>(1, steps - warmup_steps));
  const double progress = std::min(1.0, static_cast<double>(step - warmup_steps) / length);
  return peak * (kFinalShare + (1.0 - kFinalShare) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
}

}  // namespace dynamiccl::zero
