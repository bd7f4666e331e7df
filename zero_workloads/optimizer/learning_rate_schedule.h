// SPDX-License-Identifier: Apache-2.0
// The learning rate of a step: linear warm-up, then half a cosine period down to a tenth of the peak.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// A pure function of the step, equal on all ranks. Let s be the number of warm-up steps and n that of all
// steps. The rate is peak * (step + 1) / s during warm-up, and peak * (0.1 + 0.9 * (1 + cos(pi * p)) / 2)
// after it, with p = (step - s) / (n - s).
struct LearningRateSchedule {
  double peak = 1e-3;
  int64_t warmup_steps = 0;
  int64_t steps = 1;

  // `step` counts from 0. Steps beyond the last keep the final rate.
  double At(int64_t step) const;
};

}  // namespace dynamiccl::zero
