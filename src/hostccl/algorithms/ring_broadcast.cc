// SPDX-License-Identifier: Apache-2.0
// Ring Broadcast: the root's data flow along the ring, pipelined in chunks (docs/algorithms.md). The last
// rank, the one before the root, does not pass them on.
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

Lane RingBroadcast(Primitives& ring, const ChannelWork& work) {
  ring.Connect(work.RingFrom(), work.RingTo());
  ChunkRounds rounds(work, 1, ring.MaxChunk());
  while (rounds.Next()) {
    const auto [offset, count] = rounds.At(0);
    if (work.rank == work.root) {
      co_await ring.CopySend(work.Input(offset), work.Output(offset), count);
    } else if (work.Neighbour(1) == work.root) {
      co_await ring.Recv(work.Output(offset), count);
    } else {
      co_await ring.RecvCopySend(work.Output(offset), count);
    }
  }
}

}  // namespace dynamiccl::hostccl
