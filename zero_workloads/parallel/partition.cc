// SPDX-License-Identifier: Apache-2.0
// Rounds each unit up so that all its shards have the same aligned length. The shards of a rank are placed in
// the order in which a backward pass completes the units.
#include "zero_workloads/parallel/partition.h"

namespace dynamiccl::zero {

Partition::Partition(std::span<const int64_t> unit_elements, int world, Ownership ownership)
    : world_(world),
      ownership_(ownership),
      units_(unit_elements.size()),
      arena_elements_(static_cast<size_t>(world)) {
  for (size_t i = 0; i < units_.size(); ++i) {
    const int64_t flat = RoundUp(unit_elements[i], world * kShardAlignment);
    units_[i].shard_elements = owns_whole_units() ? flat : flat / world;
  }
  // The loop visits the units in the order n - 1, ..., 1, 0.
  for (size_t i = units_.size(); i-- > 0;) {
    const int first = owns_whole_units() ? owner(static_cast<int>(i)) : 0;
    const int last = owns_whole_units() ? first : world - 1;
    units_[i].arena_offset = arena_elements_[static_cast<size_t>(first)];
    for (int rank = first; rank <= last; ++rank)
      arena_elements_[static_cast<size_t>(rank)] += units_[i].shard_elements;
  }
}

Shard Partition::shard(int index, int64_t rank) const {
  const auto [elements, offset] = unit(index);
  if (!owns_whole_units()) return {rank * elements, elements, offset};
  return rank == owner(index) ? Shard{0, elements, offset} : Shard{};
}

}  // namespace dynamiccl::zero
