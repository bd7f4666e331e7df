// SPDX-License-Identifier: Apache-2.0
// Least squares by normal equations: with P the sum of products of excesses and v the sum of excess x time,
// the shares are s = P^-1 v, the variance of the noise is (sum of time^2 - s'v) / (steps - keys), and the
// standard error of a share is the root of the variance times its diagonal element of P^-1. All sums forget
// slowly. Times are limited to three deviations from the model before they count.
#include "src/decision/guard/waited_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace dynamiccl {
namespace {

// Factor of every sum at each step, so a sum follows about the last 16384 steps. Most of the information
// comes from searches, which are rare.
constexpr double kFade = 1 - 1.0 / 16384;
// The equations are solved once in this many steps, because solving is the costly part.
constexpr uint64_t kSolveEvery = 8;
// The equations are first solved after this many steps, plus one for each key.
constexpr double kFirstSteps = 24;
// Usual values are averages over about the last 32 steps.
constexpr double kLevelRate = 1.0 / 32;
// The time of a step is limited to this many deviations from the model: a stalled step says nothing about
// shares.
constexpr double kOutlier = 3;

// Borders of the levels, as the share of a key's time for which the program waits. How the host schedules
// threads can move a quarter of a key's time, so less counts as hidden. A key with a share above three
// quarters counts as exposed.
constexpr double kHiddenBelow = 0.25;
constexpr double kExposedAbove = 0.75;
// A share is known when its standard error is at most kKnownError. A level changes when the share is beyond
// its border by kMargin.
constexpr double kKnownError = 0.12;
constexpr double kMargin = 0.05;

// Replaces a symmetric positive definite matrix of n rows by its inverse, by Gauss-Jordan elimination.
// Returns false if it is singular.
template <class Matrix>
bool Invert(Matrix& matrix, size_t n) {
  for (size_t pivot = 0; pivot < n; ++pivot) {
    const double diagonal = matrix[pivot][pivot];
    if (!(diagonal > 0)) return false;
    matrix[pivot][pivot] = 1;
    for (size_t c = 0; c < n; ++c) matrix[pivot][c] /= diagonal;
    for (size_t r = 0; r < n; ++r) {
      if (r == pivot) continue;
      const double factor = std::exchange(matrix[r][pivot], 0.0);
      for (size_t c = 0; c < n; ++c) matrix[r][c] -= factor * matrix[pivot][c];
    }
  }
  return true;
}

}  // namespace

Criticality CriticalityOf(double share) {
  if (share < kHiddenBelow) return Criticality::kHidden;
  return share > kExposedAbove ? Criticality::kExposed : Criticality::kPartial;
}

WaitedShares::Row WaitedShares::RowOf(const std::map<uint32_t, double>& excess_ns) {
  Row x{};
  for (const auto& [key, ns] : excess_ns) {
    if (!columns_.contains(key) && columns_.size() == kMaxKeys) continue;
    x[columns_.try_emplace(key, columns_.size()).first->second] = ns;
  }
  return x;
}

void WaitedShares::TakeLevelAway(Row& x, double& time) {
  const double rate = 1.0 / ++since_;
  const auto away = [rate = std::max(rate, kLevelRate)](double& usual, double& value) {
    usual += rate * (value - usual);
    value -= usual;
  };
  away(usual_ns_, time);
  for (size_t c = 0; c < kMaxKeys; ++c) away(usual_[c], x[c]);
}

void WaitedShares::TakeSteps(const std::map<uint32_t, double>& excess_ns, double two_steps_ns) {
  Row x = RowOf(excess_ns);
  double time = two_steps_ns;
  TakeLevelAway(x, time);
  if (deviation_ > 0) {
    const double expected = std::inner_product(x.begin(), x.end(), slopes_.begin(), 0.0);
    time = expected + std::clamp(time - expected, -kOutlier * deviation_, kOutlier * deviation_);
  }
  for (size_t r = 0; r < columns_.size(); ++r) {
    for (size_t c = 0; c < columns_.size(); ++c) products_[r][c] = kFade * products_[r][c] + x[r] * x[c];
    with_time_[r] = kFade * with_time_[r] + x[r] * time;
  }
  squares_ = kFade * squares_ + time * time;
  steps_ = kFade * steps_ + 1;
  if (++taken_ % kSolveEvery == 0) Solve();
}

void WaitedShares::Solve() {
  const size_t n = columns_.size();
  if (n == 0 || steps_ < kFirstSteps + static_cast<double>(n)) return;
  auto inverse = products_;
  // A key without any recent excess would make the matrix singular. With 1 on the diagonal the key's share is
  // 0, and the other shares are not affected.
  for (size_t c = 0; c < n; ++c) inverse[c][c] = std::max(inverse[c][c], 1.0);
  if (!Invert(inverse, n)) return;
  double explained = 0;
  for (size_t r = 0; r < n; ++r) {
    slopes_[r] = std::inner_product(with_time_.begin(), with_time_.end(), inverse[r].begin(), 0.0);
    explained += slopes_[r] * with_time_[r];
  }
  const double variance = std::max(0.0, squares_ - explained) / (steps_ - static_cast<double>(n));
  deviation_ = std::sqrt(variance);
  // Each step was counted in two pairs, so the evidence is half as strong as the sums say.
  for (size_t c = 0; c < n; ++c) errors_[c] = std::sqrt(2 * variance * inverse[c][c]);
  Rate();
}

void WaitedShares::Rate() {
  for (const auto& [key, column] : columns_) {
    if (products_[column][column] <= 1 || errors_[column] > kKnownError) continue;
    const Criticality low = CriticalityOf(slopes_[column] - kMargin);
    const Criticality high = CriticalityOf(slopes_[column] + kMargin);
    Criticality& level = levels_[column];
    // Sets the level if the share minus the margin and the share plus the margin have the same level. Also
    // sets it if the present level is neither of the two.
    if (low == high || (level != low && level != high)) level = CriticalityOf(slopes_[column]);
  }
}

std::optional<WaitedShare> WaitedShares::Of(uint32_t key) const {
  const auto column = columns_.find(key);
  if (column == columns_.end() || deviation_ == 0 || errors_[column->second] == 0) return std::nullopt;
  return WaitedShare{slopes_[column->second], errors_[column->second]};
}

Criticality WaitedShares::LevelOf(uint32_t key) const {
  const auto column = columns_.find(key);
  return column == columns_.end() ? Criticality::kUnknown : levels_[column->second];
}

}  // namespace dynamiccl
