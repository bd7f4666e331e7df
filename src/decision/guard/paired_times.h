// SPDX-License-Identifier: Apache-2.0
// Pairs each call of a rare kind (a trial, a sample of NCCL's choice) with the calls of the common kind just
// before it, or the next one: near in time, so both met the same fabric. No call is in two pairs.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace dynamiccl {

class PairedTimes {
 public:
  // log of a time; the ratio log(rare / common) when a pair is complete.
  std::optional<double> TakeCommon(double log_time);
  std::optional<double> TakeRare(double log_time);

 private:
  // More would reach back further in time for little less noise.
  static constexpr size_t kMax = 3;
  double Reference() const;

  std::array<double, kMax> recent_{};
  size_t n_recent_ = 0;
  std::optional<double> waiting_;  // a rare call without a common one
};

}  // namespace dynamiccl
