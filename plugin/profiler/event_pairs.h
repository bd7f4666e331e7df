// SPDX-License-Identifier: Apache-2.0
// One event, two profilers: NCCL keeps one handle for it. It gets the chained plugin's own handle wherever
// that plugin has one, so that nothing can be lost of its events; ours stands beside it as long as it is
// remembered, which is a few hundred events of timing windows.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace dynamiccl {

class EventPairs {
 public:
  // What NCCL is to keep. Either may be null.
  void* Join(void* ours, void* theirs);
  // Of what NCCL kept; null where there is none.
  void* OursOf(void* kept);
  static void* TheirsOf(void* kept) { return IsOursAlone(kept) ? nullptr : kept; }
  // The event has ended and nothing refers to it any more.
  void Forget(void* kept);

 private:
  // Handles of ours alone are places in here: no other handle has such an address.
  static constexpr size_t kPlaces = 1024;
  // Events of windows that are remembered: two groups of many communicators.
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
