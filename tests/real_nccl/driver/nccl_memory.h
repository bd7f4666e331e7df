// SPDX-License-Identifier: Apache-2.0
// Memory of ncclMemAlloc. NCCL can register it with communicators and put it into symmetric windows.
#pragma once

#include "tests/real_nccl/driver/world.h"

namespace real_nccl_driver {

// Owns two buffers of `bytes` each, one behind the other in one allocation.
class NcclMemory {
 public:
  NcclMemory(const Rank& rank, size_t bytes) : rank_(rank.rank()), bytes_(2 * bytes) {
    Demand(ncclMemAlloc(&memory_, bytes_), rank_, "MemAlloc");
    buffers_ = {memory_, static_cast<char*>(memory_) + bytes};
  }
  ~NcclMemory() { Demand(ncclMemFree(memory_), rank_, "MemFree"); }
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;

  void* all() const { return memory_; }
  size_t bytes() const { return bytes_; }  // of both buffers
  const Buffers& buffers() const { return buffers_; }

 private:
  int rank_;
  size_t bytes_;
  void* memory_ = nullptr;
  Buffers buffers_;
};

}  // namespace real_nccl_driver
