// SPDX-License-Identifier: Apache-2.0
// The state machine of the loss scale. A growth restores the number of tolerated overflows. An overflow
// resets the count of good steps.
#include "zero_workloads/optimizer/loss_scale.h"

#include <algorithm>

namespace dynamiccl::zero {
namespace {

// Growth and decay are powers of two, so that scaling changes no mantissa.
constexpr double kFactor = 2.0;
// The largest scale. The norm is summed from squares of scaled gradients in fp32. At a scale of 2^64, the
// square of a gradient of 1 would leave the range of fp32.
constexpr double kMax = 0x1p60;

}  // namespace

LossScale::LossScale(const LossScaleSettings& settings)
    : settings_(settings), value_(settings.first), overflows_left_(settings.hysteresis) {}

bool LossScale::Update(bool overflow) {
  if (!settings_.dynamic) return !overflow;
  if (!overflow) {
    if (++clean_steps_ < settings_.growth_interval) return true;
    value_ = std::min(value_ * kFactor, kMax);
    clean_steps_ = 0;
    overflows_left_ = settings_.hysteresis;
    return true;
  }
  clean_steps_ = 0;
  if (overflows_left_ > 1) {
    --overflows_left_;
    return true;
  }
  if (value_ <= settings_.least) return false;
  value_ = std::max(value_ / kFactor, settings_.least);
  return true;
}

void LossScale::Restore(const State& state) {
  if (!settings_.dynamic) return;
  value_ = std::max(state.value, settings_.least);
  clean_steps_ = state.clean_steps;
  overflows_left_ = std::clamp<int64_t>(state.overflows_left, 1, settings_.hysteresis);
}

}  // namespace dynamiccl::zero
