// SPDX-License-Identifier: Apache-2.0
// The trees of PAT, NCCL's parallel aggregated trees: one binomial tree for every rank's block, all alike and
// shifted by the rank. A rank at distance v behind its block's root has the block's copies or partial sums of
// the distances v to v + (lowest bit of v) - 1. Any number of ranks; log2(n) phases, phase with span d joins
// v and v + d for every v that is a multiple of 2d.
//
// All trees' messages of a phase have one sender and one receiver for each rank, so they travel together
// (aggregated) as far as they are small.
#pragma once

#include <algorithm>
#include <vector>

#include "src/hostccl/algorithms/channel_work.h"

namespace dynamiccl::hostccl {

// The largest power of two below n: the span of the phase that joins the farthest.
constexpr int LargestSpan(int n_ranks) {
  int span = 1;
  while (span * 2 < n_ranks) span *= 2;
  return span;
}

// How many trees exchange in the phase: multiples v of 2 span with v + span < n.
constexpr int PairsOfSpan(int n_ranks, int span) {
  return (n_ranks - span + 2 * span - 1) / (2 * span);
}

// Below this a message's posting costs more than copying it once more: blocks up to it are sent together.
inline constexpr size_t kAggregateBytes = 64 << 10;

// Blocks of one phase that travel in one message, and the memory where they are put together.
class Aggregation {
 public:
  Aggregation(const ChannelWork& work, size_t max_chunk)
      : element_bytes_(work.element_bytes), staging_(std::max(kAggregateBytes, max_chunk * element_bytes_)) {}

  // Blocks of `count` elements in a message, at least 1; the same on all ranks.
  int PerMessage(size_t count) const {
    return static_cast<int>(std::clamp<size_t>(kAggregateBytes / (count * element_bytes_), 1, 1 << 20));
  }
  std::byte* Part(int index, size_t count) {
    return staging_.data() + static_cast<size_t>(index) * count * element_bytes_;
  }

 private:
  size_t element_bytes_;
  std::vector<std::byte> staging_;
};

}  // namespace dynamiccl::hostccl
