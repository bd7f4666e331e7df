// SPDX-License-Identifier: Apache-2.0
// Ring ReduceScatter: partial sums travel n-1 steps to the rank that keeps them (docs/algorithms.md). Block r
// starts at rank r+1 and is summed in the order r+1, r+2, ..., r.
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

Lane RingReduceScatter(Primitives& ring, const ChannelWork& work) {
  ring.Connect(work.RingFrom(), work.RingTo());
  ChunkRounds rounds(work, 1, ring.MaxChunk());
  // Returns the address of a rank's block in this rank's send buffer.
  auto block = [&work](int rank, Chunk chunk) {
    return work.Input(static_cast<size_t>(rank) * work.count + chunk.offset);
  };
  while (rounds.Next()) {
    const Chunk chunk = rounds.At(0);
    co_await ring.Send(block(work.Neighbour(-1), chunk), chunk.count);
    for (int step = 2; step < work.n_ranks; ++step) {
      co_await ring.RecvReduceSend(block(work.Neighbour(-step), chunk), chunk.count);
    }
    co_await ring.RecvReduceCopy(block(work.rank, chunk), work.Output(chunk.offset), chunk.count);
  }
}

}  // namespace dynamiccl::hostccl
