// SPDX-License-Identifier: Apache-2.0
// The usual value of one quantity in a stream of alike calls (one key and one config): the median of the
// value's logs and their spread. Both are learnt from the first calls and follow slow drift afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace dynamiccl {

// The reference of one stream, owned by a TimingDetector; one thread. It is unknown until it has learnt
// kLearnt values, and stays known afterwards.
class TimeReference {
 public:
  // A stream learns its reference from this many values. A table plan has this many of the first calls timed
  // (kCalmCalls / kCalmPeriod in table_plan.h).
  static constexpr size_t kLearnt = 24;
  // A residual counts as at most this many spreads, so one stall alone cannot raise an alarm.
  static constexpr double kWinsorise = 3;

  // True once there is a reference.
  bool known() const { return spread_ > 0; }
  // Standard deviation of the logs, exact for normal noise; 0 while unknown.
  double spread() const { return spread_; }
  // Returns the distance of the log `value` from the reference; nothing while the reference is being learnt.
  // `least_spread` is a lower limit of the spread. `learns`: the reference may be learnt from this value.
  std::optional<double> Residual(double value, double least_spread, bool learns);
  // Lets the reference drift towards a residual that Residual returned.
  void Follow(double residual, double least_spread);
  // Moves the reference by `by`, in logs, because the usual value changed for good. Values learnt so far
  // stay.
  void Shift(double by) { middle_ += by; }
  // Moves the reference and the values learnt so far, because later values are expected to differ by `by`.
  void Expect(double by);

 private:
  // The values learnt so far; empty once there are enough.
  std::vector<double> learnt_;
  double middle_ = 0;
  double spread_ = 0;
};

}  // namespace dynamiccl
