// SPDX-License-Identifier: Apache-2.0
// The exact median and quartiles of durations that pass one by one, without keeping them. Many durations must
// pass twice: the first time says in which bin of a histogram each quantile lies, the second time the values
// of these bins are counted.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/report/timing.h"

namespace dynamiccl {

// The durations of one key. Memory is some ten kilobytes, and the values that differ within six bins, each of
// which is less than 1 % wide.
class DurationQuantiles {
 public:
  // The most durations that are kept, so that they need not pass again.
  static constexpr size_t kKept = 4096;

  // Takes a duration in nanoseconds, which saturates at 2^32 - 1 as in a record.
  void Add(int64_t ns);
  // True if all durations must pass again, through AddAgain, before Microseconds may be called.
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
