// SPDX-License-Identifier: Apache-2.0
// Decides which rank holds which part of the model. Every unit's parameters lie flat one after another,
// padded to a multiple of the world size. Rank r's shard of the unit is the r-th of `world` equal contiguous
// parts.
//
// The shards of one rank form its arena, unit after unit in the order in which a backward pass completes
// them: last block first, root last. A rank's gradients, master weights and optimizer states are each one
// tensor over the arena, and gradient buckets are slices of the arena.
//
// With Ownership::kWhole, rank i mod N owns unit i whole, and its arena has the units that it owns.
//
// Example with 2 ranks and units 0 to 2, where a unit's flat tensor is the shard of rank 0 followed by that
// of rank 1:
//
//   unit 0: [a0 a1]   unit 1: [b0 b1]   unit 2: [c0 c1]
//   arena of rank 0: c0 b0 a0           arena of rank 1: c1 b1 a1
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dynamiccl::zero {

// Elements. A parameter starts on a cache line (64 bytes) in fp32 and bf16, so kernels see the same alignment
// in every stage.
inline constexpr int64_t kParameterAlignment = 32;
// Elements. A shard's length is a multiple of this number. Vector loops over a rank's shards then have no
// scalar remainder, whose rounding could differ.
inline constexpr int64_t kShardAlignment = 128;

// The smallest multiple of `multiple` that is at least `value`.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Says who owns a unit's parameters.
enum class Ownership {
  // Each rank owns one of N equal parts.
  kParts,
  // Rank i mod N owns unit i whole, as in pictures of ZeRO that give each layer to one GPU.
  kWhole,
};

// The part of a unit that a rank owns, in elements.
struct Shard {
  // The first element in the unit's flat tensor.
  int64_t begin = 0;
  // 0 if the rank owns nothing of the unit.
  int64_t elements = 0;
  // The start of the shard in the rank's arena.
  int64_t arena_offset = 0;
};

// The place of a unit, in elements. With Ownership::kWhole, the shard of the unit's owner is the whole unit.
struct UnitPartition {
  int64_t shard_elements = 0;
  // The start of this unit's shard in a rank's arena, which is the sequence of all its shards.
  int64_t arena_offset = 0;
};

// The places of all units in flat tensors and in arenas (the shards of one rank, one after another). The
// object is immutable. It is equal on all ranks, since it depends only on the model and the world size.
class Partition {
 public:
  // `unit_elements` has the flat length of each unit without padding at its end; unit 0 is the root.
  Partition(std::span<const int64_t> unit_elements, int world, Ownership ownership = Ownership::kParts);

  int world() const { return world_; }
  int units() const { return static_cast<int>(units_.size()); }
  const UnitPartition& unit(int unit) const { return units_[static_cast<size_t>(unit)]; }
  // The length of the unit's flat tensor with padding: `world` shards, or one shard if ranks own whole units.
  int64_t flat_elements(int index) const {
    return unit(index).shard_elements * (owns_whole_units() ? 1 : world_);
  }
  bool owns_whole_units() const { return ownership_ == Ownership::kWhole; }
  // The rank that owns the unit with Ownership::kWhole.
  int owner(int unit) const { return unit % world_; }
  // Returns the part of the unit that `rank` owns.
  Shard shard(int unit, int64_t rank) const;
  // The length of a rank's arena.
  int64_t arena_elements(int64_t rank) const { return arena_elements_[static_cast<size_t>(rank)]; }
  // The same with Ownership::kParts, where all arenas have one length.
  int64_t arena_elements() const { return arena_elements_[0]; }

 private:
  int world_;
  Ownership ownership_;
  std::vector<UnitPartition> units_;
  // The length of each rank's arena.
  std::vector<int64_t> arena_elements_;
};

}  // namespace dynamiccl::zero
