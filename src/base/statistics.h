// SPDX-License-Identifier: Apache-2.0
// Statistics of samples, each with one definition for the whole project. The functions that end in InPlace
// reorder their argument and allocate nothing; the others copy the samples, which may be of any arithmetic
// type. Every statistic of no samples is 0: a caller that may have none checks for that itself.
#pragma once

#include <cmath>
#include <iterator>
#include <span>
#include <vector>

namespace dynamiccl {

// The median absolute deviation of normal noise times this is its standard deviation: 1 / 0.6745, where
// 0.6745 is the upper quartile of the standard normal distribution.
inline constexpr double kSigmasOfMedianDeviation = 1.4826;

// Returns the middle value; if the number of values is even, the mean of the two middle values.
double MedianInPlace(std::span<double> values);

// Returns the value at position share * (n - 1) of the sorted values. Positions count from 0, and a fraction
// interpolates linearly between neighbours: type 7 of Hyndman and Fan, "Sample Quantiles in Statistical
// Packages", 1996. `share` is from 0 to 1. Quantile(values, 0.5) equals Median(values).
double QuantileInPlace(std::span<double> values, double share);

// Returns the smallest value that at least `share` of the values do not exceed. The result is always one of
// the values. nccl-tests defines its p95 and p99 in this way.
double NearestRankInPlace(std::span<double> values, double share);

// Returns the standard deviation of normal noise around `middle`, estimated from the median absolute
// deviation. Each value in `values` is replaced by its distance from `middle`.
double RobustDeviationInPlace(double middle, std::span<double> values);

template <typename Values>
double Median(const Values& values) {
  std::vector<double> copy(std::begin(values), std::end(values));
  return MedianInPlace(copy);
}

template <typename Values>
double Quantile(const Values& values, double share) {
  std::vector<double> copy(std::begin(values), std::end(values));
  return QuantileInPlace(copy, share);
}

template <typename Values>
double NearestRank(const Values& values, double share) {
  std::vector<double> copy(std::begin(values), std::end(values));
  return NearestRankInPlace(copy, share);
}

template <typename Values>
double Mean(const Values& values) {
  double sum = 0;
  for (const auto value : values) sum += static_cast<double>(value);
  return std::empty(values) ? 0 : sum / static_cast<double>(std::size(values));
}

// Returns the mean natural logarithm. Every value must be above 0.
template <typename Values>
double MeanLog(const Values& values) {
  double sum = 0;
  for (const auto value : values) sum += static_cast<double>(std::log(value));
  return std::empty(values) ? 0 : sum / static_cast<double>(std::size(values));
}

// Returns the geometric mean. Every value must be above 0.
template <typename Values>
double GeometricMean(const Values& values) {
  return std::empty(values) ? 0 : std::exp(MeanLog(values));
}

struct ConfidenceInterval {
  double low = 0;
  double high = 0;
};

// The middle of symmetrically distributed values and its 95 % interval, without further assumptions about the
// distribution. The middle is the median of the means of all pairs (Hodges and Lehmann, "Estimates of
// Location Based on Rank Tests", Ann. Math. Statist. 34 (1963)). The interval belongs to Wilcoxon's
// signed-rank test; with fewer than six values it is infinite. Time and memory grow with the square of the
// number of values.
struct MiddleEstimate {
  double middle = 0;
  ConfidenceInterval interval;
};
MiddleEstimate SignedRankEstimate(std::span<const double> values);

// The 95 % percentile interval of a bootstrap: quantiles 0.025 and 0.975 of the statistic over all draws.
ConfidenceInterval BootstrapInterval(std::vector<double> draws);

}  // namespace dynamiccl
