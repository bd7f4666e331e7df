// SPDX-License-Identifier: Apache-2.0
// Pairs each call of a rare kind (a sample of NCCL's choice) with calls of the common kind just
// before it, or with the next one. They are near in time, so both met the same fabric.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace dynamiccl {

// Makes the pairs of one rare kind. A plain value of constant size, owned by a GuardedKey; one
// thread. It guarantees that no call is in two pairs, so the pairs of one object are independent of each
// other.
class PairedTimes {
 public:
  // Each takes the log of a time, in the order of calls, and returns log(rare / common) when this call
  // completes a pair.
  std::optional<double> TakeCommon(double log_time);
  std::optional<double> TakeRare(double log_time);

 private:
  // Common calls that one rare call is compared with at most. More would reach back further in time for
  // little less noise.
  static constexpr size_t kMax = 3;
  // The median of the recent common calls. There must be one at least.
  double Reference() const;

  std::array<double, kMax> recent_{};
  size_t n_recent_ = 0;
  // A rare call that came with no common call before it; it waits for the next one.
  std::optional<double> waiting_;
};

}  // namespace dynamiccl
