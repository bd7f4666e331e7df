// SPDX-License-Identifier: Apache-2.0
// What is usual for one quantity of one stream of alike calls: the median and the spread of its logs. Both
// are learnt from the first calls and follow slow drift afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace dynamiccl {

// The reference of one stream, owned by a TimingDetector; one thread. It is unknown until kLearnt values were
// learnt, and then never becomes unknown again.
class TimeReference {
 public:
  // Values of a stream before it has a reference. The plan times as many calls first (kCalmCalls /
  // kCalmPeriod in table_plan.h).
  static constexpr size_t kLearnt = 24;
  // Residuals count as at most this many spreads: one stall alone cannot raise an alarm.
  static constexpr double kWinsorise = 3;

  // True once there is a reference.
  bool known() const { return spread_ > 0; }
  // Standard deviation of the logs, as far as normal noise; 0 while unknown.
  double spread() const { return spread_; }
  // Returns how far the log `value` lies off the reference; nothing while the reference is being learnt.
  // `least_spread` is a lower limit of the spread. `learns`: the value may be learnt from.
  std::optional<double> Residual(double value, double least_spread, bool learns);
  // Lets the reference drift towards a residual that Residual returned.
  void Follow(double residual, double least_spread);
  // Moves the reference by `by`, because the level changed for good.
  void Shift(double by) { middle_ += by; }

 private:
  // Values so far; empty once there are enough.
  std::vector<double> learnt_;
  double middle_ = 0;
  double spread_ = 0;
};

}  // namespace dynamiccl
