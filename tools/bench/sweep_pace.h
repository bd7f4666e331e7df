// SPDX-License-Identifier: Apache-2.0
// Predicts how long the rest of a sweep in rounds takes, from what its first cells took.
#pragma once

#include <cstddef>
#include <vector>

namespace dynamiccl {

// Each rank has one, and all are told the same times, so that all predict the same. Times are microseconds.
class SweepPace {
 public:
  SweepPace() = default;
  // `expected_us[i]` is what the untimed samples say about timing cell i once. They are the first calls of
  // each config, so they are often too long, and on a busy machine too short.
  explicit SweepPace(const std::vector<double>& expected_us);

  // The cells from `begin` to before `end` were timed once, which took `us` with the probe around them. All
  // predictions are scaled by what such times are in relation to the expected ones.
  void Observe(size_t begin, size_t end, double us);
  // The time from cell `begin` to the end of its round.
  double RestOfRound(size_t begin) const;
  double Round() const { return RestOfRound(0); }

 private:
  // sums_[i] is the expected time of all cells before cell i.
  std::vector<double> sums_{0};
  double expected_us_ = 0;
  double measured_us_ = 0;
};

// The rounds that a sweep makes altogether, as far as is known when `begun` of them have begun, the current
// one has `rest_us` to go and `left_us` of the budget are left. At least two, or `wanted` if that is less,
// and the begun ones; at most `wanted`.
int RoundsAltogether(int begun, double rest_us, double left_us, double round_us, int wanted);

}  // namespace dynamiccl
