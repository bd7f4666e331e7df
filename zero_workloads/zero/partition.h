// SPDX-License-Identifier: Apache-2.0
// Which rank holds which part of the model. Every unit's parameters lie flat one after another, padded to a
// multiple of the world size; rank r's shard is the r-th of `world` equal contiguous parts. The shards of one
// rank, unit after unit in the order in which a backward pass completes them (last block first, root last),
// form its arena: gradients, master weights and optimizer state of a rank are each one tensor over the arena.
// Gradient buckets are slices of the arena.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dynamiccl::zero {

// Elements. A parameter starts on a cache line in fp32 and bf16, so that kernels see the same alignment in
// every stage.
inline constexpr int64_t kParameterAlignment = 32;
// A shard's length is a multiple of it: vector loops then have no scalar rest, whose rounding could differ,
// whatever part of an arena they are run on.
inline constexpr int64_t kShardAlignment = 128;

constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct UnitPartition {
  int64_t shard_elements = 0;
  int64_t arena_offset = 0;  // of this unit's shard in the arena
};

class Partition {
 public:
  // `unit_elements`: flat length of each unit without padding at its end; unit 0 is the root.
  Partition(std::span<const int64_t> unit_elements, int world);

  int world() const { return world_; }
  int units() const { return static_cast<int>(units_.size()); }
  const UnitPartition& unit(int unit) const { return units_[static_cast<size_t>(unit)]; }
  int64_t flat_elements(int index) const { return unit(index).shard_elements * world_; }
  int64_t arena_elements() const { return arena_elements_; }

 private:
  int world_;
  std::vector<UnitPartition> units_;
  int64_t arena_elements_ = 0;
};

}  // namespace dynamiccl::zero
