// SPDX-License-Identifier: Apache-2.0
// Learning rate of a step: linear warm-up, then half a cosine down to a tenth of the peak.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

struct LearningRateSchedule {
  double peak = 1e-3;
  int64_t warmup_steps = 0;
  int64_t steps = 1;

  // `step` counts from 0.
  double At(int64_t step) const;
};

}  // namespace dynamiccl::zero
