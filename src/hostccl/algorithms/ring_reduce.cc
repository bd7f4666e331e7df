// SPDX-License-Identifier: Apache-2.0
// Ring Reduce: the partial sum flows along the ring to the root, pipelined in chunks (docs/algorithms.md).
// The rank behind the root starts, so the order of the sum is root+1, root+2, ..., root.
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

Lane RingReduce(Primitives& ring, const ChannelWork& work) {
  ring.Connect(work.RingFrom(), work.RingTo());
  ChunkRounds rounds(work, 1, ring.MaxChunk());
  while (rounds.Next()) {
    const auto [offset, count] = rounds.At(0);
    if (work.rank == work.root) {
      co_await ring.RecvReduceCopy(work.Input(offset), work.Output(offset), count);
    } else if (work.Neighbour(-1) == work.root) {
      co_await ring.Send(work.Input(offset), count);
    } else {
      co_await ring.RecvReduceSend(work.Input(offset), count);
    }
  }
}

}  // namespace dynamiccl::hostccl
