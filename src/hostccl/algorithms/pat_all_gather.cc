// SPDX-License-Identifier: Apache-2.0
// PAT AllGather: blocks go down their trees (pat_tree.h), the farthest step first, so that few bytes travel
// far. A rank sends one block over a distance of n/2 ranks, two over n/4, ..., n/2 blocks to its neighbour
// (docs/algorithms.md). Blocks are received directly into the result. Only small blocks are first combined
// into one message.
#include <cstring>

#include "src/hostccl/algorithms/algorithms.h"
#include "src/hostccl/algorithms/pat_tree.h"

namespace dynamiccl::hostccl {
namespace {

// Says where the blocks lie in this rank's receive buffer, for one chunk of each block.
class Gathered {
 public:
  Gathered(const ChannelWork& work, Chunk chunk) : work_(work), chunk_(chunk) {}

  // Returns the address of the block of the rank that is `distance` ranks before this one.
  std::byte* Block(int distance) const {
    return work_.Output(static_cast<size_t>(work_.Neighbour(-distance)) * work_.count + chunk_.offset);
  }
  // These copy blocks into the message of a phase and out of it.
  void PutTogether(Aggregation& message, int span, int first, int n) const {
    for (int i = 0; i < n; ++i) {
      std::memcpy(message.Part(i, chunk_.count), Block(2 * span * (first + i)), bytes());
    }
  }
  void TakeApart(Aggregation& message, int span, int first, int n) const {
    for (int i = 0; i < n; ++i) {
      std::memcpy(Block(2 * span * (first + i) + span), message.Part(i, chunk_.count), bytes());
    }
  }

 private:
  size_t bytes() const { return chunk_.count * work_.element_bytes; }

  const ChannelWork& work_;
  const Chunk chunk_;
};

}  // namespace

// In the phase with this `span` a rank sends to the rank `span` after it and receives from the rank `span`
// before it.
Lane PatAllGather(Primitives& peers, const ChannelWork& work) {
  ChunkRounds rounds(work, 1, peers.MaxChunk());
  Aggregation message(work, peers.MaxChunk());
  while (rounds.Next()) {
    const Chunk chunk = rounds.At(0);
    const Gathered blocks(work, chunk);
    if (blocks.Block(0) != work.Input(chunk.offset)) {
      std::memcpy(blocks.Block(0), work.Input(chunk.offset), chunk.count * work.element_bytes);
    }
    const int per_message = message.PerMessage(chunk.count);
    for (int span = LargestSpan(work.n_ranks); span > 0; span /= 2) {
      peers.Connect({{work.Neighbour(-span), -1, -1}}, {{work.Neighbour(span), -1, -1}});
      const int pairs = PairsOfSpan(work.n_ranks, span);
      for (int first = 0; first < pairs; first += per_message) {
        const int n = std::min(per_message, pairs - first);
        if (n == 1) {
          co_await peers.SendResult(blocks.Block(2 * span * first), chunk.count);
          co_await peers.Recv(blocks.Block(2 * span * first + span), chunk.count);
          continue;
        }
        blocks.PutTogether(message, span, first, n);
        co_await peers.SendResult(message.Part(0, 0), chunk.count * static_cast<size_t>(n));
        co_await peers.Recv(message.Part(0, 0), chunk.count * static_cast<size_t>(n));
        blocks.TakeApart(message, span, first, n);
      }
    }
  }
}

}  // namespace dynamiccl::hostccl
