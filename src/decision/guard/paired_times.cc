// SPDX-License-Identifier: Apache-2.0
// A rare call uses up the common calls before it. If there are none, it waits for the next common call. A
// second rare call replaces one that waits.
#include "src/decision/guard/paired_times.h"

#include <algorithm>
#include <utility>

namespace dynamiccl {

std::optional<double> PairedTimes::TakeCommon(double log_time) {
  if (waiting_) return *std::exchange(waiting_, std::nullopt) - log_time;
  if (n_recent_ == kMax) {
    std::shift_left(recent_.begin(), recent_.end(), 1);
    --n_recent_;
  }
  recent_[n_recent_++] = log_time;
  return std::nullopt;
}

std::optional<double> PairedTimes::TakeRare(double log_time) {
  if (n_recent_ == 0) {
    waiting_ = log_time;
    return std::nullopt;
  }
  const double reference = Reference();
  n_recent_ = 0;
  return log_time - reference;
}

// The median of one to three values, without a sort.
double PairedTimes::Reference() const {
  if (n_recent_ == 1) return recent_[0];
  if (n_recent_ == 2) return (recent_[0] + recent_[1]) / 2;
  return std::max(std::min(recent_[0], recent_[1]), std::min(std::max(recent_[0], recent_[1]), recent_[2]));
}

}  // namespace dynamiccl
