// SPDX-License-Identifier: Apache-2.0
// How the project's own trainer lays a model out over ranks (docs/zero_trainer.md, "Layout in memory"):
// shards and gradient buckets follow from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dynamiccl {

struct ZeroArenaSettings {
  int ranks = 1;                   // that the model is divided over
  int64_t bucket_bytes = 4 << 20;  // over all ranks
  int64_t element_bytes = 4;       // of a gradient in its bucket
  bool bucket_per_unit = false;    // a bucket is one unit, whatever its size
};

// What one unit's gradients do to a bucket.
struct BucketPart {
  bool opens = false;  // they are the first in it
  int64_t full = 0;    // a rank's elements of the bucket, where they are the last in it; else 0
};

// Elements of a unit whose parameters have so many each: each starts on a cache line.
int64_t FlatElements(std::span<const int64_t> parameters);

// A rank's shards one after another, last unit first.
class ZeroArena {
 public:
  // `units`: FlatElements of each, the root first.
  ZeroArena(std::span<const int64_t> units, const ZeroArenaSettings& settings);

  size_t units() const { return shards_.size(); }
  // Of a rank.
  int64_t shard(size_t unit) const { return shards_[unit]; }
  // Of all ranks, with padding.
  int64_t whole(size_t unit) const { return shards_[unit] * settings_.ranks; }
  int64_t elements() const { return elements_; }
  // Buckets of which the unit has a part, in order; those of later units are filled before.
  std::vector<BucketPart> BucketsOf(size_t unit) const;

 private:
  ZeroArenaSettings settings_;
  std::vector<int64_t> shards_, offsets_;  // by unit
  int64_t elements_ = 0;
  int64_t capacity_ = 0;  // of a bucket, in elements of a rank
};

}  // namespace dynamiccl
