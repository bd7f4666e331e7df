// SPDX-License-Identifier: Apache-2.0
// NCCL keeps one handle for each profiler event, but two profilers give one: DynamICCL and the plugin that
// the job would have had without it (the chained plugin). This class finds both handles from the one that
// NCCL keeps. NCCL keeps the plugin's handle where there is one, so none of the plugin's events is lost.
// DynamICCL's handle is remembered beside it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace dynamiccl {

// One object per process, never destroyed; any thread. If nothing is timed and no plugin is chained, a lookup
// is one atomic load. Only the newest kMax of DynamICCL's handles are remembered; a collective whose handle
// was forgotten gets no duration.
class EventPairs {
 public:
  // Returns the handle that NCCL is to keep for an event. `ours` is DynamICCL's handle of the event, `theirs`
  // the chained plugin's. Either may be null.
  void* Join(void* ours, void* theirs);
  // Returns DynamICCL's handle of the event for which NCCL keeps `kept`; null if there is none.
  void* OursOf(void* kept);
  // Returns the chained plugin's handle of the event for which NCCL keeps `kept`; null if there is none.
  static void* TheirsOf(void* kept) { return IsOursAlone(kept) ? nullptr : kept; }
  // Forgets an event that has ended and to which nothing refers any more.
  void Forget(void* kept);

 private:
  // If the chained plugin gives no handle, NCCL keeps the address of an element of places_. No other handle
  // can have that address. The elements are used in turn. A program may issue calls far ahead of its device,
  // so the elements suffice for all events of the 512 collectives that KernelTimes holds: one event per
  // collective, and one per channel of up to 64. Memory is taken as elements are used.
  static constexpr size_t kPlaces = 65536;
  // The most handles of DynamICCL that are remembered beside a handle of the chained plugin, for the same
  // events as kPlaces.
  static constexpr size_t kMax = kPlaces;

  static bool IsOursAlone(const void* kept);

  std::atomic<size_t> remembered_{0};
  std::mutex mutex_;
  std::unordered_map<void*, void*> ours_;  // the key is the handle of the chained plugin
  std::deque<void*> order_;
  std::atomic<uint64_t> next_{0};
  static std::atomic<void*> alone_[kPlaces];
  static char places_[kPlaces];
};

}  // namespace dynamiccl
