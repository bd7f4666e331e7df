// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/sweep_pace.h"

#include <algorithm>

#include "tools/bench/sweep_plan.h"

namespace dynamiccl {

SweepPace::SweepPace(const std::vector<double>& expected_us) {
  for (const double us : expected_us) sums_.push_back(sums_.back() + us);
}

void SweepPace::Observe(size_t begin, size_t end, double us) {
  expected_us_ += sums_[end] - sums_[begin];
  measured_us_ += us;
}

double SweepPace::RestOfRound(size_t begin) const {
  const double expected = sums_.back() - sums_[begin];
  return expected_us_ > 0 ? expected * measured_us_ / expected_us_ : expected;
}

int RoundsAltogether(int begun, double rest_us, double left_us, double round_us, int wanted) {
  const double from_the_start = left_us - rest_us + begun * round_us;
  return std::max(begun, RepeatsWithin(from_the_start, round_us, wanted));
}

}  // namespace dynamiccl
