// SPDX-License-Identifier: Apache-2.0
// LibTorch's CUDA caching allocator on memory of a given size (its defaults,
// c10/cuda/CUDACachingAllocator.cpp of 2.13): blocks are cut best fit from segments, freed blocks join their
// neighbours in the segment and stay cached, and a segment goes back to the device only when all of it is
// free and the memory is out. A device's segments have no place: they fit as long as their sum does.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "zero_workloads/memory/first_fit_arena.h"

namespace dynamiccl::zero {

class CachingArena final : public MemoryArena {
 public:
  explicit CachingArena(int64_t bytes);

  std::optional<int64_t> Allocate(int64_t bytes) override;
  void Free(int64_t offset) override;
  ArenaUse Use() const override;
  int64_t AddressBytes() const override { return addresses_.AddressBytes(); }

 private:
  struct Block {
    int64_t bytes = 0;
    int64_t segment = 0;  // offset of the segment's first block
    bool small = false;   // which pool it is of
    bool taken = false;
  };
  using Blocks = std::map<int64_t, Block>;  // by offset; a segment's lie one after another

  std::set<std::pair<int64_t, int64_t>>& Pool(const Block& block) { return free_[block.small ? 0 : 1]; }
  bool AddSegment(int64_t bytes, bool small);
  void ReleaseFreeSegments();
  void Split(Blocks::iterator block, int64_t bytes);
  void JoinWithNext(Blocks::iterator block);

  int64_t total_, reserved_ = 0, taken_ = 0, peak_taken_ = 0, allocations_ = 0;
  FirstFitArena addresses_;
  Blocks blocks_;
  std::set<std::pair<int64_t, int64_t>> free_[2];  // small and large blocks: bytes, offset
  std::map<int64_t, int64_t> segments_;            // offset to bytes
};

}  // namespace dynamiccl::zero
