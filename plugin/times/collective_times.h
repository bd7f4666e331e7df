// SPDX-License-Identifier: Apache-2.0
// The times of a process's collectives (DYNAMICCL_TIMES): when they are measured, by which clock, their
// statistics, and the cost of measuring them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "plugin/times/kernel_times.h"
#include "plugin/times/time_statistics.h"
#include "plugin/times/timing_window.h"

namespace dynamiccl {

// Owned by the process's runtime, never destroyed; any thread. The issuing thread counts calls and opens
// windows; NCCL's threads report events.
class CollectiveTimes {
 public:
  // `times_all`: the user's settings time every call.
  explicit CollectiveTimes(bool times_all = false) : times_all_(times_all) {}
  bool times_all() const { return times_all_; }
  TimingWindow& window() { return window_; }
  KernelTimes& kernels() { return kernels_; }
  const TimeStatistics& statistics() const { return statistics_; }

  // Adds the duration of one of NCCL's callbacks, in nanoseconds, to the cost that timing adds on the host.
  void Charge(int64_t nanoseconds) {
    callbacks_.fetch_add(1, std::memory_order_relaxed);
    callback_ns_.fetch_add(nanoseconds, std::memory_order_relaxed);
  }
  int64_t cost_ns() const { return callback_ns_.load(std::memory_order_relaxed); }
  // Counts an issued call, timed or not.
  void CountCall() { calls_.fetch_add(1, std::memory_order_relaxed); }
  // Returns for example "timed 12 of 1200 calls (1.00 %), 12 to their end: 96 callbacks, 31.2 us", for the
  // log at the end of the process.
  std::string Summary() const;

 private:
  const bool times_all_;
  TimingWindow window_;
  TimeStatistics statistics_;
  KernelTimes kernels_{statistics_};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> callbacks_{0};
  std::atomic<int64_t> callback_ns_{0};
};

}  // namespace dynamiccl
