// SPDX-License-Identifier: Apache-2.0
// Ring AllReduce: a reduce-scatter and an all-gather over the same ring, 2(n-1) steps of 1/n of the data
// (docs/algorithms.md). Chunk c starts at rank c+1 and is summed in the order c+1, c+2, ..., c:
//
//   step 1            rank c+1 sends its part of chunk c
//   steps 2 to n-1    ranks c+2, ..., c-1 add their part and pass the sum on
//   step n            rank c adds its part, stores the result and passes it on
//   steps n+1 to 2n-1 the other ranks store the result and pass it on, except the last one
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

Lane RingAllReduce(Primitives& ring, const ChannelWork& work) {
  ring.Connect(work.RingFrom(), work.RingTo());
  ChunkRounds rounds(work, work.n_ranks, ring.MaxChunk());
  while (rounds.Next()) {
    Chunk chunk = rounds.At(work.Neighbour(-1));
    co_await ring.Send(work.Input(chunk.offset), chunk.count);
    for (int step = 2; step < work.n_ranks; ++step) {
      chunk = rounds.At(work.Neighbour(-step));
      co_await ring.RecvReduceSend(work.Input(chunk.offset), chunk.count);
    }
    chunk = rounds.At(work.rank);
    co_await ring.RecvReduceCopySend(work.Input(chunk.offset), work.Output(chunk.offset), chunk.count);
    for (int step = 1; step < work.n_ranks - 1; ++step) {
      chunk = rounds.At(work.Neighbour(-step));
      co_await ring.RecvCopySend(work.Output(chunk.offset), chunk.count);
    }
    chunk = rounds.At(work.Neighbour(1));
    co_await ring.Recv(work.Output(chunk.offset), chunk.count);
  }
}

}  // namespace dynamiccl::hostccl
