// SPDX-License-Identifier: Apache-2.0
// The same arithmetic as zero_workloads/parallel/partition.h: a parameter starts on a cache line, and a shard
// is a whole number of vectors.
#include "traces/generators/zero_arena.h"

#include <algorithm>

#include "traces/generators/operation_list.h"

namespace dynamiccl {
namespace {

// Alignments in elements, as in partition.h.
constexpr int64_t kParameterAlignment = 32;
constexpr int64_t kShardAlignment = 128;

}  // namespace

int64_t FlatElements(std::span<const int64_t> parameters) {
  int64_t sum = 0;
  for (const int64_t elements : parameters) sum += RoundUp(elements, kParameterAlignment);
  return sum;
}

ZeroArena::ZeroArena(std::span<const int64_t> units, const ZeroArenaSettings& settings)
    : settings_(settings), shards_(units.size()), offsets_(units.size()) {
  for (size_t unit = units.size(); unit-- > 0;) {
    shards_[unit] = RoundUp(units[unit], settings.ranks * kShardAlignment) / settings.ranks;
    offsets_[unit] = elements_;
    elements_ += shards_[unit];
  }
  const int64_t wanted =
      std::max<int64_t>(1, settings.bucket_bytes / (settings.ranks * settings.element_bytes));
  capacity_ = std::min(RoundUp(wanted, kShardAlignment), elements_);
}

std::vector<BucketPart> ZeroArena::BucketsOf(size_t unit) const {
  const int64_t begin = offsets_[unit], end = begin + shards_[unit];
  if (begin == end) return {};
  if (settings_.bucket_per_unit) return {{true, shards_[unit]}};
  std::vector<BucketPart> parts;
  for (int64_t bucket = begin / capacity_ * capacity_; bucket < end; bucket += capacity_) {
    const int64_t bucket_end = std::min(bucket + capacity_, elements_);
    parts.push_back({bucket >= begin, bucket_end <= end ? bucket_end - bucket : 0});
  }
  return parts;
}

}  // namespace dynamiccl
