// SPDX-License-Identifier: Apache-2.0
// Tree AllReduce: partial sums go up to the root and the result comes down, pipelined in chunks
// (docs/algorithms.md). Odd channels use the second of the two complementary trees
// (topology/double_binary_tree.h). A node sums its own element first, then its children's.
#include "src/hostccl/algorithms/algorithms.h"

namespace dynamiccl::hostccl {

Lane TreeReduceUp(Primitives& tree, const ChannelWork& work) {
  const bool is_root = work.tree.parent < 0;
  // The root receives sums from its children and sends results to its children. Other ranks send to their
  // parent.
  tree.Connect(work.TreeChildren(), is_root ? work.TreeChildren() : work.TreeParent());
  ChunkRounds rounds(work, 1, tree.MaxChunk());
  while (rounds.Next()) {
    const auto [offset, count] = rounds.At(0);
    if (is_root) {
      co_await tree.RecvReduceCopySend(work.Input(offset), work.Output(offset), count);
    } else {
      co_await tree.RecvReduceSend(work.Input(offset), count);
    }
  }
}

// Runs beside TreeReduceUp. A chunk comes down only after this rank has sent it up, so calls in place are
// safe.
Lane TreeBroadcastDown(Primitives& tree, const ChannelWork& work) {
  if (work.tree.parent < 0) co_return;
  tree.Connect(work.TreeParent(), work.TreeChildren());
  ChunkRounds rounds(work, 1, tree.MaxChunk());
  while (rounds.Next()) {
    const auto [offset, count] = rounds.At(0);
    co_await tree.RecvCopySend(work.Output(offset), count);
  }
}

}  // namespace dynamiccl::hostccl
