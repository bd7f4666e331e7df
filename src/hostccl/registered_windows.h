// SPDX-License-Identifier: Apache-2.0
// The buffers that a program registered on one communicator: for itself (ncclCommRegister) and, agreed with
// all ranks, as windows (ncclCommWindowRegister). Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace dynamiccl::hostccl {

class RegisteredWindows {
 public:
  struct Entry {
    void* address = nullptr;
    size_t bytes = 0;
    bool is_window = false;
    bool shared = false;  // window: memory of ncclMemAlloc on every rank
  };

  // Never 0; what handles are made of.
  uint64_t Add(const Entry& entry);
  std::optional<Entry> Find(uint64_t id) const;
  // False: there is no such entry of this kind.
  bool Remove(uint64_t id, bool is_window);
  // In a window that is shared.
  bool InSharedWindow(const void* address) const;

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;
  uint64_t next_ = 1;
  std::atomic<int> shared_windows_{0};  // so that calls without windows take no lock
};

}  // namespace dynamiccl::hostccl
