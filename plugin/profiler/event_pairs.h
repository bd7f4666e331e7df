// SPDX-License-Identifier: Apache-2.0
// Maps the one handle that NCCL keeps for an event to the handles of two profilers. Where the chained plugin
// has a handle, NCCL keeps that one, so that none of the plugin's events can be lost. DynamICCL's own handle
// is remembered beside it, for a few hundred events of timing windows.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace dynamiccl {

// One object per process, never destroyed; any thread. If nothing is timed and no plugin is chained, a lookup
// is one load. Only the newest 512 handles are remembered: older collectives get no duration.
class EventPairs {
 public:
  // Returns the handle that NCCL is to keep. Either argument may be null.
  void* Join(void* ours, void* theirs);
  // Returns our handle of an event, by the handle that NCCL kept; null if there is none.
  void* OursOf(void* kept);
  // Returns the chained plugin's handle; null if there is none.
  static void* TheirsOf(void* kept) { return IsOursAlone(kept) ? nullptr : kept; }
  // Forgets an event that has ended and to which nothing refers any more.
  void Forget(void* kept);

 private:
  // If an event has no handle of the chained plugin, NCCL keeps the address of an element of places_, which
  // cannot be equal to any other handle.
  static constexpr size_t kPlaces = 1024;
  // The most events that are remembered: those of two groups on many communicators.
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
