// SPDX-License-Identifier: Apache-2.0
// ReduceScatter by the algorithm that stands for NVLS: each rank sums its block from all ranks' buffers
// (docs/algorithms.md). It has one step, in which each rank reads its block from all peers' memory. If
// buffers cannot be reached, the ordered algorithm (ordered_sum.cc) runs instead and gives the same bits.
#include "src/hostccl/algorithms/algorithms.h"
#include "src/hostccl/algorithms/one_pass.h"

namespace dynamiccl::hostccl {
namespace {

// Works on the members' buffers directly. Peers only read buffers, so no output buffer is announced.
Lane ReduceScatterInPlace(Primitives& slots, const ChannelWork& work) {
  if (work.begin == work.end) co_return;
  NodeExchange& node = *work.node;
  const size_t bytes = work.element_bytes;
  co_await node.Announce({work.send, work.count * bytes * static_cast<size_t>(work.n_ranks), nullptr, 0,
                          slots.reduction().multiplier});
  if (node.direct()) {
    NodePieces pieces(node, {work.begin, work.end - work.begin}, bytes);
    NodeSum sum(node, slots.reduction(), (static_cast<size_t>(work.n_ranks) + 1) * work.count * bytes);
    while (pieces.Next()) {
      co_await node.Enter(pieces.arrival_ns());
      const auto [offset, count] = pieces.piece();
      std::byte* const output = work.Output(offset);
      sum.Run(static_cast<size_t>(work.rank) * work.count + offset, count, {&output, 1}, true);
      node.Leave();
    }
  } else {
    co_await SubLane(OrderedReduceScatter(slots, work));
  }
  co_await node.Finish();
}

}  // namespace

// A small call sends its data with the announcement of the buffers. A larger call reads the members' buffers.
Lane OnePassReduceScatter(Primitives& slots, const ChannelWork& work) {
  const size_t bytes = (work.end - work.begin) * work.element_bytes * static_cast<size_t>(work.n_ranks);
  return bytes > 0 && work.node->Carries(bytes) ? RunCarried(Collective::kReduceScatter, slots, work)
                                                : ReduceScatterInPlace(slots, work);
}

}  // namespace dynamiccl::hostccl
