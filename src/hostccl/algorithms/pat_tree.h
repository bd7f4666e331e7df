// SPDX-License-Identifier: Apache-2.0
// The trees of PAT, NCCL's parallel aggregated trees. Every rank's block has a binomial tree whose root is
// that rank. All trees are alike, each shifted by its root. A rank at distance v behind the root handles the
// block, or its partial sum, for the distances v to v + (lowest set bit of v) - 1. This works for any number
// of ranks.
//
// There are ceil(log2(n)) phases. In the phase with span d, the ranks at distances v and v + d exchange data,
// for every v that is a multiple of 2d. For n = 8 and one block:
//   span 4:  0 - 4
//   span 2:  0 - 2   4 - 6
//   span 1:  0 - 1   2 - 3   4 - 5   6 - 7
// In each phase every rank sends to one rank and receives from one rank, in all trees. So the messages of
// small blocks travel together as one ("aggregated").
#pragma once

#include <algorithm>
#include <vector>

#include "src/hostccl/algorithms/channel_work.h"

namespace dynamiccl::hostccl {

// Returns the largest power of two below the number of ranks: the span of the phase between the farthest
// ranks.
constexpr int LargestSpan(int n_ranks) {
  int span = 1;
  while (span * 2 < n_ranks) span *= 2;
  return span;
}

// Returns the number of trees that exchange data in the phase: the multiples v of 2 span with v + span < n.
constexpr int PairsOfSpan(int n_ranks, int span) {
  return (n_ranks - span + 2 * span - 1) / (2 * span);
}

// In bytes. Posting a message with a smaller block costs more than copying the block once more. So smaller
// blocks are sent together, in messages of up to this size.
inline constexpr size_t kAggregateBytes = 64 << 10;

// The memory in which the blocks of one message are combined. The object is a local variable of a lane.
class Aggregation {
 public:
  Aggregation(const ChannelWork& work, size_t max_chunk)
      : element_bytes_(work.element_bytes), staging_(std::max(kAggregateBytes, max_chunk * element_bytes_)) {}

  // Returns how many blocks of `count` elements one message holds, at least 1. The result is equal on all
  // ranks.
  int PerMessage(size_t count) const {
    return static_cast<int>(std::clamp<size_t>(kAggregateBytes / (count * element_bytes_), 1, 1 << 20));
  }
  // Returns the address of block number `index` in the message.
  std::byte* Part(int index, size_t count) {
    return staging_.data() + static_cast<size_t>(index) * count * element_bytes_;
  }

 private:
  size_t element_bytes_;
  std::vector<std::byte> staging_;
};

}  // namespace dynamiccl::hostccl
