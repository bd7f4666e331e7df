// SPDX-License-Identifier: Apache-2.0
// Rounds each unit up so that all its shards have the same aligned length. The shards of a rank are placed in
// the order in which a backward pass completes the units.
#include "zero_workloads/parallel/partition.h"

namespace dynamiccl::zero {

Partition::Partition(std::span<const int64_t> unit_elements, int world)
    : world_(world), units_(unit_elements.size()) {
  for (size_t i = 0; i < units_.size(); ++i) {
    units_[i].shard_elements = RoundUp(unit_elements[i], world * kShardAlignment) / world;
  }
  // The loop visits the units in the order n - 1, ..., 1, 0.
  for (size_t i = units_.size(); i-- > 0;) {
    units_[i].arena_offset = arena_elements_;
    arena_elements_ += units_[i].shard_elements;
  }
}

}  // namespace dynamiccl::zero
