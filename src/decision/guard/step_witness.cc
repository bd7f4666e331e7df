// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/step_witness.h"

#include <algorithm>
#include <cmath>

namespace dynamiccl {
namespace {

// log(1.03). If the calls' times changed by 10 % or more but steps changed by less than 3 %, there is little
// to gain.
constexpr double kLeastChange = 0.0296;
constexpr double kNoiseTimes = 3;

}  // namespace

bool StepWitness::Suspect() {
  if (taken_ < kKept) return false;
  double sum = 0;
  for (size_t i = 0; i < kStepsBefore; ++i) sum += last_[(taken_ + i) % kKept];
  before_ = sum / kStepsBefore;
  sum_after_ = 0;
  after_ = kStepsAfter;
  return true;
}

std::optional<bool> StepWitness::Take(double log_ns) {
  if (taken_ == 0) first_ = log_ns;
  last_[taken_++ % kKept] = log_ns;
  if (after_ == 0) {
    noise_.Take(log_ns - first_);
    return std::nullopt;
  }
  sum_after_ += log_ns;
  if (--after_ > 0) return std::nullopt;
  const double varies = std::hypot(noise_.DeviationOf(kStepsAfter, 1), noise_.DeviationOf(kStepsBefore, 1));
  return std::abs(sum_after_ / kStepsAfter - before_) >= std::max(kLeastChange, kNoiseTimes * varies);
}

void StepWitness::Forget() {
  taken_ = 0;
  after_ = 0;
  noise_.Recentre();
}

}  // namespace dynamiccl
