// SPDX-License-Identifier: Apache-2.0
// One event, two profilers, and one handle that NCCL keeps for it. NCCL gets the chained plugin's own handle
// wherever that plugin has one, so that none of its events can be lost. Our handle is remembered beside it,
// for a few hundred events of timing windows.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace dynamiccl {

// One for the process, never destroyed; any thread. Where nothing is timed and no plugin is chained, a
// look-up is one load. Handles beyond the newest 512 are forgotten: their collectives get no duration.
class EventPairs {
 public:
  // What NCCL is to keep. Either may be null.
  void* Join(void* ours, void* theirs);
  // Our handle of an event, by what NCCL kept; null where there is none.
  void* OursOf(void* kept);
  // The chained plugin's handle; null where there is none.
  static void* TheirsOf(void* kept) { return IsOursAlone(kept) ? nullptr : kept; }
  // The event has ended and nothing refers to it any more.
  void Forget(void* kept);

 private:
  // What NCCL keeps for an event that only we have is the address of a place in here, which no other handle
  // has.
  static constexpr size_t kPlaces = 1024;
  // Events that are remembered: those of two groups on many communicators.
  static constexpr size_t kMax = 512;

  static bool IsOursAlone(const void* kept);

  std::atomic<size_t> remembered_{0};
  std::mutex mutex_;
  std::unordered_map<void*, void*> ours_;  // by the handle of the chained plugin
  std::deque<void*> order_;
  std::atomic<uint64_t> next_{0};
  std::atomic<void*> alone_[kPlaces] = {};
  static char places_[kPlaces];
};

}  // namespace dynamiccl
