// SPDX-License-Identifier: Apache-2.0
// What one rank of a communicator and its leader exchange about times. The rank sends how long its timed
// calls took; the leader orders whether this rank is to send times, and until which call all are to be timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "src/decision/guard/timed_calls.h"

namespace dynamiccl {

// So many times are sent together. To wake a thread for each of them, and the leader's after it, takes tens
// of microseconds of a rank whose cores are all busy.
inline constexpr size_t kTimesSentTogether = 4;

// Shared by the communicator, the events that are timed, and the switch thread. Any thread; the path of calls
// that are not timed only loads the orders.
class TimesReport {
 public:
  // `news` is called when so many times are there, on the thread that adds the last of them. Whoever takes
  // them looks by itself now and then for the others.
  explicit TimesReport(std::function<void()> news) : news_(std::move(news)) {}

  // A call took this long. On a thread of NCCL's, or the issuing one.
  void Add(const CallTime& time) {
    {
      const std::lock_guard lock(mutex_);
      times_.push_back(time);
      if (times_.size() != kTimesSentTogether) return;
    }
    news_();
  }
  // Removes and returns what has not been taken yet.
  std::vector<CallTime> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(times_, {});
  }

  // The leader's orders.
  void SetOrders(bool tells, uint64_t all_until) {
    all_until_.store(all_until, std::memory_order_relaxed);
    tells_.store(tells, std::memory_order_relaxed);
  }
  // Whether this rank sends its times.
  bool tells() const { return tells_.load(std::memory_order_relaxed); }
  // Whether this call is to be timed whatever the plan says.
  bool TimesAll(uint64_t call) const { return call < all_until_.load(std::memory_order_relaxed); }

 private:
  const std::function<void()> news_;
  std::atomic<bool> tells_{false};
  std::atomic<uint64_t> all_until_{0};
  std::mutex mutex_;  // guards times_
  std::vector<CallTime> times_;
};

}  // namespace dynamiccl
