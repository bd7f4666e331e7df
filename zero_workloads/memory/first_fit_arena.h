// SPDX-License-Identifier: Apache-2.0
// One contiguous piece of memory, filled first fit: a block is taken at the lowest place where it fits.
#pragma once

#include <map>
#include <unordered_map>

#include "zero_workloads/memory/memory_arena.h"

namespace dynamiccl::zero {

class FirstFitArena final : public MemoryArena {
 public:
  // `bytes` is rounded down to whole alignments.
  explicit FirstFitArena(int64_t bytes);

  std::optional<int64_t> Allocate(int64_t bytes) override;
  void Free(int64_t offset) override;
  ArenaUse Use() const override;
  int64_t AddressBytes() const override { return total_; }

 private:
  std::map<int64_t, int64_t> holes_;             // offset to bytes; no two touch
  std::unordered_map<int64_t, int64_t> blocks_;  // offset to bytes
  int64_t total_ = 0, taken_ = 0, peak_taken_ = 0, allocations_ = 0;
};

}  // namespace dynamiccl::zero
