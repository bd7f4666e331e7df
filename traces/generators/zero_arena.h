// SPDX-License-Identifier: Apache-2.0
// The layout that the project's own trainer gives to a model over its ranks (docs/zero_memory.md, "Layout in
// memory"). Shards and gradient buckets follow from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dynamiccl {

// The trainer's settings that shape the layout.
struct ZeroArenaSettings {
  int ranks = 1;                   // number over which the model is divided
  int64_t bucket_bytes = 4 << 20;  // bytes of a bucket over all ranks
  int64_t element_bytes = 4;       // bytes of a gradient in its bucket
  bool bucket_per_unit = false;    // a bucket is one unit, whatever its size
};

// The part of a bucket that one unit's gradients fill.
struct BucketPart {
  bool opens = false;  // the gradients are the first in the bucket
  // The elements that a rank has of the whole bucket, if these gradients are the last to fill it; else 0.
  int64_t full = 0;
};

// Number of elements of a unit with padding: each parameter starts on a cache line. `parameters` holds the
// elements of each parameter of the unit.
int64_t FlatElements(std::span<const int64_t> parameters);

// The arrangement of a rank's shards: one after another, last unit first, because gradients arrive in that
// order. Buckets divide this sequence into equal pieces. Immutable.
class ZeroArena {
 public:
  // `units`: FlatElements of each unit, the root first.
  ZeroArena(std::span<const int64_t> units, const ZeroArenaSettings& settings);

  size_t units() const { return shards_.size(); }
  // Elements of a rank's shard of a unit.
  int64_t shard(size_t unit) const { return shards_[unit]; }
  // Elements of a unit on all ranks, with padding.
  int64_t whole(size_t unit) const { return shards_[unit] * settings_.ranks; }
  // Elements of all shards of a rank.
  int64_t elements() const { return elements_; }
  // The buckets that hold gradients of the unit, in order. Buckets of later units are filled first.
  std::vector<BucketPart> BucketsOf(size_t unit) const;

 private:
  ZeroArenaSettings settings_;
  std::vector<int64_t> shards_, offsets_;  // by unit
  int64_t elements_ = 0;
  int64_t capacity_ = 0;  // capacity of a bucket, in elements of one rank
};

}  // namespace dynamiccl
