// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.h"

#include <algorithm>
#include <cstddef>

namespace dynamiccl {
namespace {

std::span<double>::iterator At(std::span<double> values, size_t place) {
  return values.begin() + static_cast<std::ptrdiff_t>(place);
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
  // Equal neighbours may be infinite, and their difference is then no number.
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

ConfidenceInterval BootstrapInterval(std::vector<double> draws) {
  return {QuantileInPlace(draws, 0.025), QuantileInPlace(draws, 0.975)};
}

}  // namespace dynamiccl
