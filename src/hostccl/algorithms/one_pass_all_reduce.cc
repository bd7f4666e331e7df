// SPDX-License-Identifier: Apache-2.0
// AllReduce by the algorithm that stands for NVLS: each rank sums a share of the elements from all ranks'
// buffers and stores the result to all of them (docs/algorithms.md). Calls in place are safe, because only
// one rank reads and writes a share. If buffers cannot be reached, the ordered algorithm (ordered_sum.cc)
// runs instead and gives the same bits.
#include "src/hostccl/algorithms/algorithms.h"
#include "src/hostccl/algorithms/one_pass.h"

namespace dynamiccl::hostccl {
namespace {

// Works on the members' buffers directly. Each piece is summed into all mapped outputs in one pass, then
// copied to the members whose buffers are not mapped.
Lane AllReduceInPlace(Primitives& slots, const ChannelWork& work) {
  if (work.begin == work.end) co_return;
  NodeExchange& node = *work.node;
  const size_t bytes = work.element_bytes;
  co_await node.Announce(
      {work.send, work.count * bytes, work.recv, work.count * bytes, slots.reduction().multiplier});
  int64_t stored_ns = 0;
  if (node.direct()) {
    const Chunk share = ShareOf({work.begin, work.end - work.begin}, bytes, node.self(), node.size());
    NodePieces pieces(node, share, bytes);
    NodeSum sum(node, slots.reduction(), 2 * work.count * bytes);
    std::vector<std::byte*> outputs;
    while (pieces.Next()) {
      co_await node.EnterToWrite(pieces.arrival_ns());
      const auto [offset, count] = pieces.piece();
      outputs.assign(1, work.Output(offset));
      for (int member = 0; member < node.size(); ++member) {
        std::byte* const output = node.Output(member, offset * bytes);
        if (member != node.self() && output != nullptr) outputs.push_back(output);
      }
      sum.Run(offset, count, outputs, true);
      node.StoreUnmapped(offset * bytes, work.Output(offset), count * bytes);
      node.Leave();
      stored_ns = node.BookOutgoing(count * bytes);
    }
  } else {
    co_await SubLane(OrderedAllReduce(slots, work));
  }
  co_await node.Finish(stored_ns);
}

}  // namespace

// A small call sends its data with the announcement of the buffers. A larger call works on the members'
// buffers.
Lane OnePassAllReduce(Primitives& slots, const ChannelWork& work) {
  const size_t bytes = (work.end - work.begin) * work.element_bytes;
  return bytes > 0 && work.node->Carries(bytes) ? RunCarried(Collective::kAllReduce, slots, work)
                                                : AllReduceInPlace(slots, work);
}

}  // namespace dynamiccl::hostccl
