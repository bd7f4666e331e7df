// SPDX-License-Identifier: Apache-2.0
// What is usual of one quantity of one stream of alike calls: median and spread of its logs, learnt from the
// first calls and followed slowly.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace dynamiccl {

class TimeReference {
 public:
  // Calls of a stream before it has a reference.
  static constexpr size_t kLearnt = 24;
  // Residuals count at most so many spreads.
  static constexpr double kWinsorise = 3;

  bool known() const { return spread_ > 0; }
  double spread() const { return spread_; }
  // The residual in logs; none while it is being learnt. `learns`: the value may be learnt from.
  std::optional<double> Residual(double value, double least_spread, bool learns);
  void Follow(double residual, double least_spread);
  // What is usual has become another.
  void Shift(double by) { middle_ += by; }

 private:
  std::vector<double> learnt_;  // until there are enough
  double middle_ = 0;
  double spread_ = 0;
};

double MedianOf(std::vector<double> values);
// Standard deviation of normal noise from the median of absolute deviations.
double SpreadAround(double middle, const std::vector<double>& values);

}  // namespace dynamiccl
