// SPDX-License-Identifier: Apache-2.0
// Holds what one rank of a communicator and its leader exchange about times. The rank sends how long its
// timed calls took. The leader orders whether this rank sends times, and below which number all calls are
// timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "src/decision/guard/timed_calls.h"

namespace dynamiccl {

// Number of times that are sent together. Waking a thread for each time, here and on the leader, would take
// tens of microseconds of a rank whose cores are all busy.
inline constexpr size_t kTimesSentTogether = 4;

// Holds times of calls on their way to the leader. The communicator, the timed events and the switch thread
// share it, and any thread may use it. A call that is not timed only loads the leader's orders, which are
// atomic.
class TimesReport {
 public:
  // `news` is called when kTimesSentTogether times have been added, on the thread that adds the last of them.
  // A reader that waits for fewer times has to call Drain from time to time.
  explicit TimesReport(std::function<void()> news) : news_(std::move(news)) {}

  // Adds the time of a call. Called on a thread of NCCL or on the issuing thread.
  void Add(const CallTime& time) {
    {
      const std::lock_guard lock(mutex_);
      times_.push_back(time);
      if (times_.size() != kTimesSentTogether) return;
    }
    news_();
  }
  // Removes and returns all times that were not taken yet.
  std::vector<CallTime> Drain() {
    const std::lock_guard lock(mutex_);
    return std::exchange(times_, {});
  }

  // Sets the leader's orders.
  void SetOrders(bool enabled, uint64_t all_until) {
    all_until_.store(all_until, std::memory_order_relaxed);
    enabled_.store(enabled, std::memory_order_relaxed);
  }
  // Returns true if this rank sends its times.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // Returns true if this call is to be timed whatever the plan says.
  bool TimesAll(uint64_t call) const { return call < all_until_.load(std::memory_order_relaxed); }

 private:
  const std::function<void()> news_;
  std::atomic<bool> enabled_{false};
  std::atomic<uint64_t> all_until_{0};
  std::mutex mutex_;  // guards times_
  std::vector<CallTime> times_;
};

}  // namespace dynamiccl
