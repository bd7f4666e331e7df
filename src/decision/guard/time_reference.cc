// SPDX-License-Identifier: Apache-2.0
// The reference begins as the median and the scaled median absolute deviation of the first kLearnt values.
// Each later value moves both by 1/256 of its distance. The distance is limited so that stalls move the
// reference little.
#include "src/decision/guard/time_reference.h"

#include <algorithm>
#include <cmath>

#include "src/base/statistics.h"

namespace dynamiccl {
namespace {

// Weight of a new value. With this weight the reference follows a drift over about 256 calls of a stream.
constexpr double kFollowRate = 1.0 / 256;

}  // namespace

std::optional<double> TimeReference::Residual(double value, double least_spread, bool learns) {
  if (known()) return value - middle_;
  if (!learns) return std::nullopt;
  learnt_.push_back(value);
  if (learnt_.size() < kLearnt) return std::nullopt;
  middle_ = MedianInPlace(learnt_);
  spread_ = std::max(least_spread, RobustDeviationInPlace(middle_, learnt_));
  learnt_ = {};
  return std::nullopt;
}

void TimeReference::Expect(double by) {
  middle_ += by;
  for (double& value : learnt_) value += by;
}

void TimeReference::Follow(double residual, double least_spread) {
  middle_ += kFollowRate * std::clamp(residual, -spread_, spread_);
  // For normal noise, the standard deviation is 1.25 times the mean absolute deviation.
  const double seen = 1.25 * std::min(std::abs(residual), kWinsorise * spread_);
  spread_ = std::max(least_spread, spread_ + kFollowRate * (seen - spread_));
}

}  // namespace dynamiccl
