// SPDX-License-Identifier: Apache-2.0
// One contiguous piece of memory, filled first fit: a block is placed at the lowest offset where it fits.
// This layout fragments visibly when short-lived and long-lived blocks mix. Contiguous pools (M_D in the ZeRO
// paper, section 6.3) are meant to prevent this.
#pragma once

#include <map>
#include <unordered_map>

#include "zero_workloads/memory/memory_arena.h"

namespace dynamiccl::zero {

// Keeps a sorted map of holes. The time of an allocation is linear in the number of holes, that of a release
// logarithmic. The owner serialises all calls. Free() of an unknown offset throws std::logic_error and
// changes nothing.
class FirstFitArena final : public MemoryArena {
 public:
  // `bytes` is rounded down to a multiple of kArenaAlignment.
  explicit FirstFitArena(int64_t bytes);

  std::optional<int64_t> Allocate(int64_t bytes) override;
  void Free(int64_t offset) override;
  ArenaUse Use() const override;
  int64_t AddressBytes() const override { return total_; }

 private:
  // The free ranges: bytes by offset. No two ranges touch, because Free() merges neighbours.
  std::map<int64_t, int64_t> holes_;
  // The blocks in use: bytes by offset.
  std::unordered_map<int64_t, int64_t> blocks_;
  int64_t total_ = 0, taken_ = 0, peak_taken_ = 0, allocations_ = 0;
};

}  // namespace dynamiccl::zero
