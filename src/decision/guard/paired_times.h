// SPDX-License-Identifier: Apache-2.0
// Pairs each call of a rare kind (a sample of NCCL's choice) with calls of the common kind just before it, or
// with the next one. The two are close in time, so they met the same state of the fabric.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace dynamiccl {

// Pairs the calls of one rare kind with common calls. A plain value of constant size, owned by a GuardedKey;
// one thread. No call is in two pairs, so the pairs of one object are independent of each other.
class PairedTimes {
 public:
  // TakeCommon and TakeRare take the log of a call's time, in the order of calls. They return log(rare /
  // common) if this call completes a pair.
  std::optional<double> TakeCommon(double log_time);
  std::optional<double> TakeRare(double log_time);

 private:
  // One rare call is compared with at most this many common calls. More would reach further back in time for
  // little less noise.
  static constexpr size_t kMax = 3;
  // Returns the median of the recent common calls, of which there must be at least one.
  double Reference() const;

  std::array<double, kMax> recent_{};
  size_t n_recent_ = 0;
  // A rare call that came with no common call before it; it waits for the next one.
  std::optional<double> waiting_;
};

}  // namespace dynamiccl
