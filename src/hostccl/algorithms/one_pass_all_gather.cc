// SPDX-License-Identifier: Apache-2.0
// AllGather by the algorithm that stands for NVLS: each rank copies all ranks' blocks from their buffers
// (docs/algorithms.md). It has one step, in which each rank of n reads (n-1)/n of the result from its peers'
// memory. If buffers cannot be reached, the ring runs instead.
#include "src/hostccl/algorithms/algorithms.h"
#include "src/hostccl/algorithms/one_pass.h"

namespace dynamiccl::hostccl {
namespace {

// In bytes. Pieces are large, because the system call that copies between processes takes two microseconds
// besides the copy, and a piece need not stay in a cache: the copied bytes are not read again. Pieces are not
// larger, because a peer that gives up first waits until the present piece is copied.
constexpr size_t kFetchedPiece = size_t{1} << 20;

// Copies elements into this rank's result. A large call writes them past the caches: nobody reads them soon,
// and the stores then need not read the result's old contents from memory.
void Copy(const Reduction& reduction, const ChannelWork& work, const std::byte* from, std::byte* to,
          size_t count) {
  // This rank's own buffers: its block and the result.
  const size_t touched_bytes = (static_cast<size_t>(work.n_ranks) + 1) * work.count * work.element_bytes;
  reduction.CombineN({.inputs = &from,
                      .n_inputs = 1,
                      .outputs = &to,
                      .n_outputs = 1,
                      .count = count,
                      .streamed = StreamedOutputs(touched_bytes)},
                     false);
}

// Copies this rank's own block at once, because that touches no peer's memory and no link carries it.
void CopyOwnBlock(const Reduction& reduction, const ChannelWork& work) {
  const std::byte* const from = work.Input(work.begin);
  std::byte* const to = work.Output(static_cast<size_t>(work.rank) * work.count + work.begin);
  if (to != from) Copy(reduction, work, from, to, work.end - work.begin);
}

// Copies one piece of every other member's block.
void GatherPiece(NodeExchange& node, const Reduction& reduction, const ChannelWork& work,
                 const Chunk& piece) {
  const size_t bytes = piece.count * work.element_bytes;
  for (int step = 1; step < node.size(); ++step) {
    // Ranks start at different blocks, so that they do not all read the same memory at once.
    const int member = (node.self() + step) % node.size();
    std::byte* const to = work.Output(static_cast<size_t>(member) * work.count + piece.offset);
    if (!node.IsMapped(member)) {
      node.Fetch(member, piece.offset * work.element_bytes, to, bytes);
      continue;
    }
    const std::byte* const from = node.Input(member, piece.offset * work.element_bytes, bytes);
    Copy(reduction, work, from, to, piece.count);
  }
}

// Reads the members' buffers directly. The ring takes over if they cannot be reached.
Lane AllGatherInPlace(Primitives& slots, const ChannelWork& work) {
  if (work.begin == work.end) co_return;
  NodeExchange& node = *work.node;
  co_await node.Announce({work.send, work.count * work.element_bytes, nullptr, 0, {}});
  if (node.direct()) {
    CopyOwnBlock(slots.reduction(), work);
    const size_t piece_bytes = node.shaped() || !node.copies() ? node.PieceBytes() : kFetchedPiece;
    NodePieces pieces(node, {work.begin, work.end - work.begin}, work.element_bytes, piece_bytes);
    while (pieces.Next()) {
      co_await node.Enter(pieces.arrival_ns());
      GatherPiece(node, slots.reduction(), work, pieces.piece());
      node.Leave();
    }
  } else {
    co_await SubLane(RingAllGather(slots, work));
  }
  co_await node.Finish();
}

}  // namespace

// A small call sends its data with the announcement of the buffers. A larger call reads the members' buffers.
Lane OnePassAllGather(Primitives& slots, const ChannelWork& work) {
  const size_t bytes = (work.end - work.begin) * work.element_bytes;
  return bytes > 0 && work.node->Carries(bytes) ? RunCarried(Collective::kAllGather, slots, work)
                                                : AllGatherInPlace(slots, work);
}

}  // namespace dynamiccl::hostccl
