// SPDX-License-Identifier: Apache-2.0
// How an allocator divides memory of a given size, as book-keeping alone: whoever owns the memory adds its
// address to the offsets. Two ways, which leave different holes: first_fit_arena.h and caching_arena.h.
#pragma once

#include <cstdint>
#include <optional>

namespace dynamiccl::zero {

// LibTorch's own alignment of host memory (c10::gAlignment): kernels see the same one with and without arena.
inline constexpr int64_t kArenaAlignment = 64;

// Bytes.
struct ArenaUse {
  int64_t total = 0;
  int64_t free = 0;          // not in a block
  int64_t largest_free = 0;  // the longest block that could be had now
  int64_t peak_taken = 0;
  int64_t allocations = 0;  // so far, those that failed not counted
};

// One thread at a time.
class MemoryArena {
 public:
  virtual ~MemoryArena() = default;
  // Offset of `bytes` > 0, rounded up as the allocator does. None where there is no place.
  virtual std::optional<int64_t> Allocate(int64_t bytes) = 0;
  // What Allocate returned and nothing else; another offset throws std::logic_error.
  virtual void Free(int64_t offset) = 0;
  virtual ArenaUse Use() const = 0;
  // All offsets are below it: of addresses, not of memory.
  virtual int64_t AddressBytes() const = 0;
};

}  // namespace dynamiccl::zero
