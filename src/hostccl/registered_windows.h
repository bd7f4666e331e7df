// SPDX-License-Identifier: Apache-2.0
// The buffers that a program registered on one communicator: for one rank (ncclCommRegister), or, together
// with all ranks, as windows (ncclCommWindowRegister).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace dynamiccl::hostccl {

// The registrations of one communicator. Any thread may use the table.
class RegisteredWindows {
 public:
  // One registration.
  struct Entry {
    void* address = nullptr;
    size_t bytes = 0;
    bool is_window = false;
    bool shared = false;  // a window that is memory of ncclMemAlloc on every rank
  };

  // Adds a registration and returns its number, which is never 0 and never used again. Handles are made from
  // the number.
  uint64_t Add(const Entry& entry);
  std::optional<Entry> Find(uint64_t id) const;
  // Removes a registration. Returns false if there is none of this kind with this number.
  bool Remove(uint64_t id, bool is_window);
  // Returns true if the address lies in a window whose memory comes from ncclMemAlloc on all ranks.
  bool InSharedWindow(const void* address) const;

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;
  uint64_t next_ = 1;
  std::atomic<int> shared_windows_{0};  // lets calls without windows skip the lock
};

}  // namespace dynamiccl::hostccl
