// SPDX-License-Identifier: Apache-2.0
// Predicts how long the rest of a sweep takes, from the time that its first cells took.
#pragma once

#include <cstddef>
#include <vector>

namespace dynamiccl {

// Predicts the remaining time of a sweep in rounds. Each rank has its own SweepPace. All ranks pass it the
// same times, so all predict the same. Times are microseconds.
class SweepPace {
 public:
  SweepPace() = default;
  // `expected_us[i]` is the time that a timed sample of cell i is expected to take, as its untimed sample
  // suggests. Untimed samples are the first calls of each config, so the expectation is often too long, and
  // on a busy machine too short.
  explicit SweepPace(const std::vector<double>& expected_us);

  // Reports that the cells from `begin` up to, but without, `end` were timed once. This took `us`, including
  // the measuring of the copy rate. Later predictions are scaled by the ratio of all reported times to the
  // expected times.
  void Observe(size_t begin, size_t end, double us);
  // Predicts the time from the start of cell `begin` to the end of its round.
  double RestOfRound(size_t begin) const;
  double Round() const { return RestOfRound(0); }

 private:
  // sums_[i] is the expected time of all cells before cell i.
  std::vector<double> sums_{0};
  double expected_us_ = 0;
  double measured_us_ = 0;
};

// Predicts how many rounds a sweep makes in total. `begun` rounds have begun, the current one takes `rest_us`
// more, and `left_us` of the budget are left. The result is at most `wanted`, and at least 2 (or `wanted`, if
// that is less) and at least `begun`.
int RoundsAltogether(int begun, double rest_us, double left_us, double round_us, int wanted);

}  // namespace dynamiccl
