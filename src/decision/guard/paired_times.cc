// SPDX-License-Identifier: Apache-2.0
// A rare call is compared with the common calls before it, and these are in no further pair. If there are no
// such common calls, the rare call waits for the next common call. A second rare call replaces one that
// waits.
#include "src/decision/guard/paired_times.h"

#include <algorithm>
#include <utility>

#include "src/base/statistics.h"

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

double PairedTimes::Reference() const {
  auto recent = recent_;
  return MedianInPlace(std::span(recent).first(n_recent_));
}

}  // namespace dynamiccl
