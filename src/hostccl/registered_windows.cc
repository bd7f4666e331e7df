// SPDX-License-Identifier: Apache-2.0
// The buffers that a program registered on one communicator. See registered_windows.h.
#include "src/hostccl/registered_windows.h"

#include <algorithm>

namespace dynamiccl::hostccl {

uint64_t RegisteredWindows::Add(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  entries_[next_] = entry;
  if (entry.shared) ++shared_windows_;
  return next_++;
}

std::optional<RegisteredWindows::Entry> RegisteredWindows::Find(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

bool RegisteredWindows::Remove(uint64_t id, bool is_window) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.is_window != is_window) return false;
  if (found->second.shared) --shared_windows_;
  entries_.erase(found);
  return true;
}

bool RegisteredWindows::InSharedWindow(const void* address) const {
  if (shared_windows_.load(std::memory_order_acquire) == 0) return false;
  const auto byte = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& row) {
    const auto begin = reinterpret_cast<uintptr_t>(row.second.address);
    return row.second.shared && byte >= begin && byte - begin < row.second.bytes;
  });
}

}  // namespace dynamiccl::hostccl
