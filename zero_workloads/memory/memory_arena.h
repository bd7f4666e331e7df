// SPDX-License-Identifier: Apache-2.0
// The interface of an allocator's bookkeeping: how it divides memory of a given size into blocks. An arena
// does not access the memory. The owner of the memory adds its base address to the offsets.
//
// The two implementations, first_fit_arena.h and caching_arena.h, fragment the memory differently.
#pragma once

#include <cstdint>
#include <optional>

namespace dynamiccl::zero {

// Bytes. LibTorch aligns host memory the same way (c10::gAlignment), so kernels see one alignment with and
// without an arena.
inline constexpr int64_t kArenaAlignment = 64;

// Bytes of an arena, by use.
struct ArenaUse {
  int64_t total = 0;
  // Bytes outside of all blocks. They need not be contiguous.
  int64_t free = 0;
  // The largest block that could be allocated now. Much less than `free` means that the memory is
  // fragmented.
  int64_t largest_free = 0;
  // The largest sum of blocks in use so far.
  int64_t peak_taken = 0;
  // Successful allocations so far.
  int64_t allocations = 0;
};

// Divides a fixed amount of memory into blocks. Objects are not thread-safe: the owner lets one thread in
// at a time.
class MemoryArena {
 public:
  virtual ~MemoryArena() = default;
  // Reserves `bytes` > 0, rounded up as the modelled allocator does, and returns the offset. Empty if no
  // place is left.
  virtual std::optional<int64_t> Allocate(int64_t bytes) = 0;
  // Releases the block at `offset`, which must come from Allocate(). Any other offset throws
  // std::logic_error.
  virtual void Free(int64_t offset) = 0;
  virtual ArenaUse Use() const = 0;
  // The upper bound of all offsets. The owner maps this many addresses; there may be more of them than bytes
  // of memory.
  virtual int64_t AddressBytes() const = 0;
};

}  // namespace dynamiccl::zero
