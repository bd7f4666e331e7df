// SPDX-License-Identifier: Apache-2.0
// Models LibTorch's CUDA caching allocator on memory of a given size, with that allocator's default
// settings (c10/cuda/CUDACachingAllocator.cpp of 2.13). A CPU run under --memory-cap thereby fragments its
// memory as a run on a GPU would.
//
// The algorithm: the device hands out segments, and blocks are cut from segments. An allocation takes the
// smallest cached block that fits (best fit) and splits off the rest. A freed block merges with free
// neighbours in its segment and stays cached. A segment goes back to the device only when all of it is free
// and the memory is exhausted.
//
// Segments have no position on a device, since its virtual addresses are plentiful: a segment fits as long
// as the sum of all segments stays below the total.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "zero_workloads/memory/first_fit_arena.h"

namespace dynamiccl::zero {

// The book-keeping of blocks and segments; it touches no memory. Its owner serialises all calls
// (memory_cap.cc does so with a mutex). Every offset that it returns is below AddressBytes(), which is
// larger than the total.
class CachingArena final : public MemoryArena {
 public:
  // `bytes` is the memory of the modelled device.
  explicit CachingArena(int64_t bytes);

  std::optional<int64_t> Allocate(int64_t bytes) override;
  void Free(int64_t offset) override;
  ArenaUse Use() const override;
  int64_t AddressBytes() const override { return addresses_.AddressBytes(); }

 private:
  // A piece of a segment, either handed out or cached.
  struct Block {
    int64_t bytes = 0;
    // Offset of the first block of its segment.
    int64_t segment = 0;
    // True if the block belongs to the pool of small blocks (at most 1 MiB), false for the pool of large
    // ones.
    bool small = false;
    bool taken = false;
  };
  // Blocks by offset. Those of one segment are adjacent in the map and cover the segment without gaps.
  using Blocks = std::map<int64_t, Block>;

  // The set of cached blocks to which a block of this kind belongs when it is free.
  std::set<std::pair<int64_t, int64_t>>& Pool(const Block& block) { return free_[block.small ? 0 : 1]; }
  // Requests a segment from the device. If the segment does not fit, calls ReleaseFreeSegments() and tries
  // again. Returns false if the segment still does not fit.
  bool AddSegment(int64_t bytes, bool small);
  // Gives every segment that is wholly free back to the device.
  void ReleaseFreeSegments();
  // Shortens `block` to `bytes` and caches the rest as a block of its own.
  void Split(Blocks::iterator block, int64_t bytes);
  // Merges `block` with the next block of the same segment, if that one is free. `block` must be in no pool.
  void JoinWithNext(Blocks::iterator block);

  // `reserved_` is the sum of all segments, `taken_` that of all blocks in use; both are at most `total_`.
  int64_t total_, reserved_ = 0, taken_ = 0, peak_taken_ = 0, allocations_ = 0;
  // Assigns each segment its range of addresses. The address range is larger than the memory.
  FirstFitArena addresses_;
  Blocks blocks_;
  // Free blocks as pairs of (bytes, offset), so that lower_bound finds the best fit. The first set holds
  // small blocks, the second large ones.
  std::set<std::pair<int64_t, int64_t>> free_[2];
  // The segments: bytes by offset.
  std::map<int64_t, int64_t> segments_;
};

}  // namespace dynamiccl::zero
