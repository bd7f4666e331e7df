// SPDX-License-Identifier: Apache-2.0
// Computes the exact median and quartiles of durations that are added one by one, without keeping all of
// them. Many durations must be added twice: the first pass shows in which bin of a histogram each quantile
// lies, and the second pass counts the values in these bins.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/report/timing.h"

namespace dynamiccl {

// The durations of one key. They take some ten kilobytes, plus the different values within six bins, each of
// which is less than 1 % wide.
class DurationQuantiles {
 public:
  // The most durations that are all kept, so that no second pass is needed.
  static constexpr size_t kKept = 4096;

  // Takes a duration in nanoseconds, which saturates at 2^32 - 1 as in a record.
  void Add(int64_t ns);
  // True if all durations must be added again, by AddAgain, before Microseconds may be called.
  bool needs_second_pass() const { return count_ > kKept; }
  // Begins the second pass.
  void BeginAgain();
  void AddAgain(int64_t ns);
  // Returns the same as Summarize of all durations in microseconds.
  Timing Microseconds() const;
  // Returns the same as Median of all durations in nanoseconds.
  double MedianNs() const;

 private:
  double QuantileUs(double share) const;
  uint32_t ValueAt(uint64_t place) const;

  uint64_t count_ = 0;
  std::vector<uint32_t> kept_;
  std::vector<uint32_t> bins_;                             // durations by bin; empty while all are kept
  std::map<size_t, std::map<uint32_t, uint64_t>> inside_;  // bin -> durations by value
};

}  // namespace dynamiccl
