// SPDX-License-Identifier: Apache-2.0
// What one rank of a communicator has to tell the leader: how long its timed calls took; and what the leader
// has told the rank: whether to tell, and until which call all are to be timed. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "src/decision/guard/timed_calls.h"

namespace dynamiccl {

// So many times are told together: to wake a thread for each of them, and the leader's after it, takes tens
// of microseconds of a rank whose cores are all busy.
inline constexpr size_t kTimesToldTogether = 4;

class TimesReport {
 public:
  // `news` is called when so many are there, on the thread that adds the last of them. Who takes them looks
  // by itself now and then for the others.
  explicit TimesReport(std::function<void()> news) : news_(std::move(news)) {}

  // A thread of NCCL's, or the issuing one: off the path of calls that are not timed.
  void Add(const CallTime& time) {
    {
      const std::lock_guard lock(mutex_);
      times_.push_back(time);
      if (times_.size() != kTimesToldTogether) return;
    }
    news_();
  }
  std::vector<CallTime> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(times_, {});
  }

  void BeTold(bool tells, uint64_t all_until) {
    all_until_.store(all_until, std::memory_order_relaxed);
    tells_.store(tells, std::memory_order_relaxed);
  }
  bool tells() const { return tells_.load(std::memory_order_relaxed); }
  bool TimesAll(uint64_t call) const { return call < all_until_.load(std::memory_order_relaxed); }

 private:
  const std::function<void()> news_;
  std::atomic<bool> tells_{false};
  std::atomic<uint64_t> all_until_{0};
  std::mutex mutex_;  // guards times_
  std::vector<CallTime> times_;
};

}  // namespace dynamiccl
