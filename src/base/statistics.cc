// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace dynamiccl {
namespace {

std::span<double>::iterator At(std::span<double> values, size_t place) {
  return values.begin() + static_cast<std::ptrdiff_t>(place);
}

// Of n values, the means of all pairs are sorted. Returns how many of the smallest, and as many of the
// largest, lie outside of the 95 % interval. Up to kExactly values the distribution of the signed-rank sum is
// exact; above it is approximated by the normal one.
size_t OutsideOfInterval(size_t n) {
  constexpr size_t kExactly = 40;
  constexpr double kTail = 0.025, kDeviations = 1.959964;
  const auto values = static_cast<double>(n);
  if (n > kExactly) {
    const double deviation = std::sqrt(values * (values + 1) * (2 * values + 1) / 24);
    return static_cast<size_t>(std::max(0.0, values * (values + 1) / 4 - kDeviations * deviation));
  }
  // By sum: the share of all combinations of signs for which the ranks with a plus add up to the sum.
  std::vector<double> share(n * (n + 1) / 2 + 1, 0.0);
  share[0] = 1;
  for (size_t rank = 1; rank <= n; ++rank) {
    for (size_t sum = share.size(); sum-- > 0;)
      share[sum] = (share[sum] + (sum >= rank ? share[sum - rank] : 0)) / 2;
  }
  double below = 0;
  size_t outside = 0;
  while (outside < share.size() && below + share[outside] <= kTail) below += share[outside++];
  return outside;
}

}  // namespace

double MedianInPlace(std::span<double> values) {
  return QuantileInPlace(values, 0.5);
}

double QuantileInPlace(std::span<double> values, double share) {
  if (values.empty()) return 0;
  const double position = share * static_cast<double>(values.size() - 1);
  const auto place = static_cast<size_t>(position);
  const auto below = At(values, place);
  std::nth_element(values.begin(), below, values.end());
  const double fraction = position - static_cast<double>(place);
  if (fraction == 0) return *below;
  const double above = *std::min_element(below + 1, values.end());
  // Equal neighbours may be infinite. Their difference would be no number, so they are not interpolated.
  return above == *below ? above : std::lerp(*below, above, fraction);
}

double NearestRankInPlace(std::span<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto place = At(values, std::clamp<size_t>(rank, 1, values.size()) - 1);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double RobustDeviationInPlace(double middle, std::span<double> values) {
  for (double& value : values) value = std::abs(value - middle);
  return kSigmasOfMedianDeviation * MedianInPlace(values);
}

MiddleEstimate SignedRankEstimate(std::span<const double> values) {
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) means.push_back((values[i] + values[j]) / 2);
  }
  std::sort(means.begin(), means.end());
  const double infinite = std::numeric_limits<double>::infinity();
  MiddleEstimate estimate{0, {-infinite, infinite}};
  if (means.empty()) return estimate;
  estimate.middle = std::midpoint(means[(means.size() - 1) / 2], means[means.size() / 2]);
  const size_t outside = OutsideOfInterval(values.size());
  if (outside > 0) estimate.interval = {means[outside - 1], means[means.size() - outside]};
  return estimate;
}

ConfidenceInterval BootstrapInterval(std::vector<double> draws) {
  return {QuantileInPlace(draws, 0.025), QuantileInPlace(draws, 0.975)};
}

}  // namespace dynamiccl
