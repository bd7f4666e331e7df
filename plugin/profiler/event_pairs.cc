// SPDX-License-Identifier: Apache-2.0
#include "plugin/profiler/event_pairs.h"

namespace dynamiccl {

std::atomic<void*> EventPairs::alone_[kPlaces];
char EventPairs::places_[kPlaces];

bool EventPairs::IsOursAlone(const void* kept) {
  const auto address = reinterpret_cast<uintptr_t>(kept);
  const auto first = reinterpret_cast<uintptr_t>(places_);
  return address >= first && address < first + kPlaces;
}

// Without a handle of the chained plugin, NCCL keeps the address of an element of places_. That element is
// used again for the kPlaces-th such event after this one.
void* EventPairs::Join(void* ours, void* theirs) {
  if (theirs == nullptr && ours == nullptr) return nullptr;
  if (theirs == nullptr) {
    const size_t place = next_.fetch_add(1, std::memory_order_relaxed) % kPlaces;
    alone_[place].store(ours, std::memory_order_release);
    return &places_[place];
  }
  // A plugin may reuse a handle for a new event. The DynamICCL handle that is remembered beside it then
  // belongs to an older event, so that handle is forgotten.
  if (ours == nullptr) {
    Forget(theirs);
    return theirs;
  }
  const std::lock_guard lock(mutex_);
  if (ours_.insert_or_assign(theirs, ours).second) order_.push_back(theirs);
  if (order_.size() > kMax) {
    ours_.erase(order_.front());
    order_.pop_front();
  }
  remembered_.store(ours_.size(), std::memory_order_release);
  return theirs;
}

void* EventPairs::OursOf(void* kept) {
  if (kept == nullptr) return nullptr;
  if (IsOursAlone(kept)) return alone_[static_cast<char*>(kept) - places_].load(std::memory_order_acquire);
  if (remembered_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = ours_.find(kept);
  return found == ours_.end() ? nullptr : found->second;
}

void EventPairs::Forget(void* kept) {
  if (IsOursAlone(kept) || remembered_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  if (ours_.erase(kept) == 0) return;
  std::erase(order_, kept);
  remembered_.store(ours_.size(), std::memory_order_release);
}

}  // namespace dynamiccl
