// SPDX-License-Identifier: Apache-2.0
// Ring AllGather: every rank passes on the block that it received, in n-1 steps (docs/algorithms.md). In step
// s a rank sends the block of the rank that is s-1 places before it.
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

Lane RingAllGather(Primitives& ring, const ChannelWork& work) {
  ring.Connect(work.RingFrom(), work.RingTo());
  ChunkRounds rounds(work, 1, ring.MaxChunk());
  // Returns the address of a rank's block in the result.
  auto block = [&work](int rank, Chunk chunk) {
    return work.Output(static_cast<size_t>(rank) * work.count + chunk.offset);
  };
  while (rounds.Next()) {
    const Chunk chunk = rounds.At(0);
    co_await ring.CopySend(work.Input(chunk.offset), block(work.rank, chunk), chunk.count);
    for (int step = 1; step < work.n_ranks - 1; ++step) {
      co_await ring.RecvCopySend(block(work.Neighbour(-step), chunk), chunk.count);
    }
    co_await ring.Recv(block(work.Neighbour(1), chunk), chunk.count);
  }
}

}  // namespace dynamiccl::hostccl
