// SPDX-License-Identifier: Apache-2.0
// Holds what one rank of a communicator and its leader exchange about times. The rank sends how long its
// timed calls took. The leader orders whether this rank sends times, and below which number all calls are
// timed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "src/decision/guard/timed_calls.h"

namespace dynamiccl {

// How many measured times are sent together. A communicator's first kSingleTimes are sent one by one, since
// the search for its steps waits for them. Those up to kFirstTimes are sent a few together. Later ones are
// sent in batches of a sixteenth of the number sent so far, but at most kMostTimesTogether. Each message
// wakes a thread here and one on the leader, and where all cores are busy, each wake-up delays the program
// (docs/results/adaptive-steps.md says by how much).
inline constexpr size_t kSingleTimes = 16;
inline constexpr size_t kFirstTimes = 256;
inline constexpr size_t kFirstTimesTogether = 4;
inline constexpr size_t kMostTimesTogether = 64;
// The most measured times that wait here while the leader cannot be reached. The leader waits a few seconds
// for a time (timed_calls.h), so more of them would be of no use.
inline constexpr size_t kMostTimesKept = 4096;

// Holds times of calls on their way to the leader. The communicator, the timed events and the switch thread
// share it, and any thread may use it. A call that is not timed only loads the leader's orders, which are
// atomic.
class TimesReport {
 public:
  // `news` is called when as many times have been added as are sent together, on the thread that adds the
  // last of them. A reader that waits for fewer times has to call Drain from time to time.
  explicit TimesReport(std::function<void()> news) : news_(std::move(news)) {}

  // Adds the time of a call; drops it if kMostTimesKept wait. Called on a thread of NCCL or on the issuing
  // thread.
  void Add(const CallTime& time) {
    {
      const std::lock_guard lock(mutex_);
      if (times_.size() == kMostTimesKept) return;
      times_.push_back(time);
      if (times_.size() != together_) return;
    }
    news_();
  }
  // Removes and returns all times that were not taken yet.
  std::vector<CallTime> Drain() {
    const std::lock_guard lock(mutex_);
    drained_ += times_.size();
    if (drained_ >= kFirstTimes) {
      together_ = std::min(drained_ / 16, kMostTimesTogether);
    } else if (drained_ >= kSingleTimes) {
      together_ = kFirstTimesTogether;
    }
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
  std::mutex mutex_;  // guards everything below
  std::vector<CallTime> times_;
  size_t drained_ = 0;   // times that Drain has returned so far
  size_t together_ = 1;  // news_ is called when this many times wait
};

}  // namespace dynamiccl
