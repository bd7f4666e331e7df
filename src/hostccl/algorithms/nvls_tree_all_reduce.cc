// SPDX-License-Identifier: Apache-2.0
// AllReduce by the algorithm that stands for NVLSTree (docs/algorithms.md). The data are cut into shares:
// - On each node, each share has one rank as its head. The head sums the share from the buffers of the node's
// ranks.
// - The heads of a share sum over a binary tree between the nodes.
// - Each head stores the result into the buffers of its node's ranks.
// The way up the tree and the way down are two lanes, so that chunks are pipelined.
#include <algorithm>
#include <vector>

#include "src/hostccl/algorithms/algorithms.h"
#include "src/hostccl/algorithms/one_pass.h"

namespace dynamiccl::hostccl {
namespace {

// The share of which this rank is the head, if it is one. On each node, the head of share j is the node's
// rank number j. So the node with the fewest ranks limits the number of shares.
class HeadShare {
 public:
  HeadShare(const ChannelWork& work, size_t chunk) : work_(work), chunk_(chunk), heads_(work.n_ranks) {
    for (const auto& ranks : work.nodes) heads_ = std::min(heads_, static_cast<int>(ranks.size()));
  }

  int heads() const { return heads_; }
  bool is_head() const { return work_.node->self() < heads_; }
  // Returns the elements of the share whose head has this number.
  Chunk Share(int head) const {
    return ShareOf({work_.begin, work_.end - work_.begin}, work_.element_bytes, head, heads_);
  }
  // Returns chunk number `round` of a share; an empty one after the last chunk.
  Chunk ChunkAt(int head, size_t round) const {
    const Chunk share = Share(head);
    const size_t begin = std::min(share.count, round * chunk_);
    return {share.offset + begin, std::min(chunk_, share.count - begin)};
  }
  Chunk OwnChunk(size_t round) const { return ChunkAt(work_.node->self(), round); }
  // Returns the number of chunks of share 0, which is the longest share.
  size_t rounds() const { return (Share(0).count + chunk_ - 1) / chunk_; }

  // Returns this head's place in the tree between the nodes, with ranks in place of node numbers. Shares
  // alternate between the two complementary trees.
  TreeNeighbours Tree() const {
    const int head = work_.node->self();
    const int n_nodes = static_cast<int>(work_.nodes.size());
    TreeNeighbours tree = BinaryTree((work_.channel + head) % 2, work_.node_index, n_nodes);
    const auto to_rank = [&](int node) {
      return node < 0 ? -1 : work_.nodes[static_cast<size_t>(node)][static_cast<size_t>(head)];
    };
    tree.parent = to_rank(tree.parent);
    for (int& child : tree.children) child = to_rank(child);
    return tree;
  }

 private:
  const ChannelWork& work_;
  size_t chunk_;
  int heads_;
};

// Returns a list of peers with this rank alone.
Peers Only(int rank) {
  return Peers{{rank, -1, -1}};
}

// Returns the number of bytes that this rank reads and writes in the call: its input and its output.
size_t TouchedBytes(const ChannelWork& work) {
  return 2 * work.count * work.element_bytes;
}

// Stores the chunk that this head has finished into the other members' buffers. Call it between
// NodeExchange::EnterToWrite and Leave.
void StoreToNode(NodeExchange& node, const ChannelWork& work, const Reduction& reduction,
                 const Chunk& chunk) {
  const std::byte* const from = work.Output(chunk.offset);
  const size_t at = chunk.offset * work.element_bytes;
  for (int member = 0; member < node.size(); ++member) {
    std::byte* const to = node.Output(member, at);
    if (member == node.self() || to == nullptr) continue;
    reduction.CombineN({.inputs = &from,
                        .n_inputs = 1,
                        .outputs = &to,
                        .n_outputs = 1,
                        .count = chunk.count,
                        .streamed = StreamedOutputs(TouchedBytes(work))},
                       false);
  }
  node.StoreUnmapped(at, from, chunk.count * work.element_bytes);
}

// Buffers for a node whose ranks exchange data through FIFO slots: the members' inputs as they arrive, and
// the node's sum.
struct SlotBuffers {
  SlotBuffers(const Primitives& slots, const ChannelWork& work)
      : chunk_bytes(slots.MaxChunk() * work.element_bytes),
        received(chunk_bytes * static_cast<size_t>(work.node->size())),
        sum(chunk_bytes) {}

  std::byte* Of(int member) { return &received[static_cast<size_t>(member) * chunk_bytes]; }

  size_t chunk_bytes;
  std::vector<std::byte> received;
  std::vector<std::byte> sum;
};

// Sums the received inputs and this rank's own input of one chunk, in the order of the members.
void SumReceived(const Reduction& reduction, const ChannelWork& work, const Chunk& chunk,
                 SlotBuffers& buffers) {
  const NodeExchange& node = *work.node;
  std::vector<const std::byte*> inputs(static_cast<size_t>(node.size()));
  std::vector<const ElementValue*> multipliers(inputs.size());
  for (int member = 0; member < node.size(); ++member) {
    inputs[static_cast<size_t>(member)] =
        member == node.self() ? work.Input(chunk.offset) : buffers.Of(member);
  }
  const bool scales = reduction.multiplier.has_value();
  if (scales) multipliers[static_cast<size_t>(node.self())] = &*reduction.multiplier;
  std::byte* const to = buffers.sum.data();
  reduction.CombineN({.inputs = inputs.data(),
                      .n_inputs = inputs.size(),
                      .outputs = &to,
                      .n_outputs = 1,
                      .count = chunk.count,
                      .multipliers = scales ? multipliers.data() : nullptr},
                     false);
}

// Handles one chunk of this head's share: collects the members' inputs, takes part in the tree between the
// nodes, and sends the result to the members.
Lane HeadThroughSlots(Primitives& slots, const ChannelWork& work, const TreeNeighbours& tree, Chunk chunk,
                      SlotBuffers& buffers) {
  const NodeExchange& node = *work.node;
  for (int member = 0; member < node.size(); ++member) {
    if (member == node.self()) continue;
    slots.Connect(Only(node.rank(member)), {});
    co_await slots.Recv(buffers.Of(member), chunk.count);
  }
  SumReceived(slots.reduction(), work, chunk, buffers);
  slots.Connect({tree.children}, tree.parent < 0 ? Peers{tree.children} : Only(tree.parent));
  if (tree.parent < 0) {
    co_await slots.RecvReduceCopySend(buffers.sum.data(), work.Output(chunk.offset), chunk.count, true);
  } else {
    co_await slots.RecvReduceSend(buffers.sum.data(), chunk.count, true);
    slots.Connect(Only(tree.parent), {tree.children});
    co_await slots.RecvCopySend(work.Output(chunk.offset), chunk.count);
  }
  for (int member = 0; member < node.size(); ++member) {
    if (member == node.self()) continue;
    slots.Connect({}, Only(node.rank(member)));
    co_await slots.SendResult(work.Output(chunk.offset), chunk.count);
  }
}

// For nodes whose ranks cannot reach each other's memory: inputs and results go through FIFO slots, chunk by
// chunk. The messages between nodes stay the same, because ranks of other nodes may reach each other's
// memory.
Lane NvlsTreeThroughSlots(Primitives& slots, const ChannelWork& work) {
  const HeadShare place(work, slots.MaxChunk());
  const NodeExchange& node = *work.node;
  SlotBuffers buffers(slots, work);
  const TreeNeighbours tree = place.is_head() ? place.Tree() : TreeNeighbours{};
  for (size_t round = 0; round < place.rounds(); ++round) {
    for (int head = 0; head < place.heads(); ++head) {
      const Chunk chunk = place.ChunkAt(head, round);
      if (head == node.self() || chunk.count == 0) continue;
      slots.Connect({}, Only(node.rank(head)));
      co_await slots.Send(work.Input(chunk.offset), chunk.count);
    }
    const Chunk mine = place.is_head() ? place.OwnChunk(round) : Chunk{};
    if (mine.count > 0) co_await SubLane(HeadThroughSlots(slots, work, tree, mine, buffers));
    for (int head = 0; head < place.heads(); ++head) {
      const Chunk chunk = place.ChunkAt(head, round);
      if (head == node.self() || chunk.count == 0) continue;
      slots.Connect(Only(node.rank(head)), {});
      co_await slots.Recv(work.Output(chunk.offset), chunk.count);
    }
  }
}

}  // namespace

// Announces the buffers, sums this head's share, and sends the sum up the tree. At the root it also stores
// the result.
Lane NvlsTreeUp(Primitives& tree, const ChannelWork& work) {
  if (work.begin == work.end) co_return;
  NodeExchange& node = *work.node;
  const size_t bytes = work.element_bytes;
  co_await node.Announce(
      {work.send, work.count * bytes, work.recv, work.count * bytes, tree.reduction().multiplier});
  if (!node.direct()) co_await SubLane(NvlsTreeThroughSlots(tree, work));
  const HeadShare place(work, tree.MaxChunk());
  if (!node.direct() || !place.is_head() || place.OwnChunk(0).count == 0) {
    co_await node.Finish();
    co_return;
  }
  const TreeNeighbours neighbours = place.Tree();
  const bool is_root = neighbours.parent < 0;
  tree.Connect({neighbours.children}, is_root ? Peers{neighbours.children} : Only(neighbours.parent));
  NodeSum sum(node, tree.reduction(), TouchedBytes(work));
  std::vector<std::byte> of_node(tree.MaxChunk() * bytes);
  int64_t stored_ns = 0;
  for (size_t round = 0; place.OwnChunk(round).count > 0; ++round) {
    const Chunk chunk = place.OwnChunk(round);
    NodePieces pieces(node, chunk, bytes);
    while (pieces.Next()) {
      co_await node.Enter(pieces.arrival_ns());
      const auto [offset, count] = pieces.piece();
      std::byte* const to = &of_node[(offset - chunk.offset) * bytes];
      sum.Run(offset, count, {&to, 1}, false);
      node.Leave();
    }
    co_await node.Valid();
    if (!is_root) {
      co_await tree.RecvReduceSend(of_node.data(), chunk.count, true);
      continue;
    }
    co_await tree.RecvReduceCopySend(of_node.data(), work.Output(chunk.offset), chunk.count, true);
    co_await node.EnterToWrite(0);
    StoreToNode(node, work, tree.reduction(), chunk);
    node.Leave();
    stored_ns = node.BookOutgoing(chunk.count * bytes);
  }
  if (is_root) co_await node.Finish(stored_ns);
}

// Runs beside NvlsTreeUp and moves results down the tree. A chunk comes down only after it was summed, so
// calls in place are safe.
Lane NvlsTreeDown(Primitives& tree, const ChannelWork& work) {
  if (work.begin == work.end) co_return;
  NodeExchange& node = *work.node;
  co_await node.Announced();
  const HeadShare place(work, tree.MaxChunk());
  if (!node.direct() || !place.is_head() || place.OwnChunk(0).count == 0) co_return;
  const TreeNeighbours neighbours = place.Tree();
  if (neighbours.parent < 0) co_return;
  tree.Connect(Only(neighbours.parent), {neighbours.children});
  int64_t stored_ns = 0;
  for (size_t round = 0; place.OwnChunk(round).count > 0; ++round) {
    const Chunk chunk = place.OwnChunk(round);
    co_await tree.RecvCopySend(work.Output(chunk.offset), chunk.count);
    co_await node.EnterToWrite(0);
    StoreToNode(node, work, tree.reduction(), chunk);
    node.Leave();
    stored_ns = node.BookOutgoing(chunk.count * work.element_bytes);
  }
  co_await node.Finish(stored_ns);
}

}  // namespace dynamiccl::hostccl
