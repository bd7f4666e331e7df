// SPDX-License-Identifier: Apache-2.0
// The part of one collective call that one channel carries, in the form that an algorithm gets, and how this
// part is cut into chunks.
//
// Example: a ReduceScatter of 3 ranks over 2 channels. The send buffer of rank 1 has one block for each rank:
//   block 0          block 1          block 2
//   |ch 0 . ch 1|    |ch 0 . ch 1|    |ch 0 . ch 1|
// begin..end of channel 0 is the same range of elements in every block
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "src/collective/collective.h"
#include "src/hostccl/lane.h"
#include "src/hostccl/primitives.h"
#include "src/hostccl/topology/double_binary_tree.h"

namespace dynamiccl::hostccl {

class NodeExchange;

// The channel's lane makes this value for each call, and the algorithm only reads it. Elements [begin, end)
// of each block belong to this channel. A block is what one rank contributes to AllGather or receives from
// ReduceScatter. Other collectives have a single block.
struct ChannelWork {
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  size_t element_bytes = 1;
  size_t count = 0;  // the call's count argument
  size_t begin = 0;
  size_t end = 0;
  DataType data_type = DataType::kInt8;
  ReduceOp op = ReduceOp::kSum;
  int rank = 0;
  int n_ranks = 1;
  int root = 0;
  std::span<const int> ring;  // ranks in the order of the ring
  int position = 0;           // place of this rank in `ring`
  TreeNeighbours tree;        // neighbours in this channel's tree
  int channel = 0;
  NodeExchange* node = nullptr;             // this channel's exchange with the ranks of this node
  std::span<const std::vector<int>> nodes;  // ranks of each node, ascending
  int node_index = 0;                       // place of this rank's node in `nodes`

  // Return the address of an element of the send buffer or of the receive buffer.
  const std::byte* Input(size_t element) const { return send + element * element_bytes; }
  std::byte* Output(size_t element) const { return recv + element * element_bytes; }
  // Returns the rank at this distance along the ring. `distance` must be from -n_ranks to n_ranks.
  int Neighbour(int distance) const {
    return ring[static_cast<size_t>((position + distance + n_ranks) % n_ranks)];
  }
  Peers RingFrom() const { return {{Neighbour(-1), -1, -1}}; }
  Peers RingTo() const { return {{Neighbour(1), -1, -1}}; }
  Peers TreeParent() const { return {{tree.parent, -1, -1}}; }
  Peers TreeChildren() const { return {tree.children}; }
};

// A range of elements within a block.
struct Chunk {
  size_t offset = 0;
  size_t count = 0;
};

// In bytes. Chunks are whole cache lines, so neighbouring chunks never share a line.
constexpr size_t kChunkGranuleBytes = 64;

// Returns the part of a block of `count` elements that belongs to channel number `channel` of `channels`. The
// parts are whole cache lines, so those of every channel but the last are aligned.
inline Chunk ShareOfChannel(size_t count, size_t element_bytes, int channels, int channel) {
  const size_t granule = std::max<size_t>(1, kChunkGranuleBytes / element_bytes);
  const size_t parts = static_cast<size_t>(channels);
  const size_t share = channels == 1 ? count : (count + parts - 1) / parts;
  const size_t aligned = (share + granule - 1) / granule * granule;
  const size_t begin = std::min(count, aligned * static_cast<size_t>(channel));
  return {begin, std::min(count - begin, aligned)};
}

// Walks over the channel's range of a block in rounds. Each round is split into `per_round` chunks of at most
// `max_chunk` elements. The last round's chunks are smaller, and some may be empty. All ranks compute the
// same chunks.
class ChunkRounds {
 public:
  ChunkRounds(const ChannelWork& work, int per_round, size_t max_chunk)
      : end_(work.end),
        per_round_(static_cast<size_t>(per_round)),
        max_chunk_(max_chunk),
        granule_(std::max<size_t>(1, kChunkGranuleBytes / work.element_bytes)),
        next_(work.begin) {}

  // Moves to the next round. Returns false after the last one.
  bool Next() {
    if (next_ >= end_) return false;
    begin_ = next_;
    const size_t share = (end_ - begin_ + per_round_ - 1) / per_round_;
    chunk_ = std::min(max_chunk_, (share + granule_ - 1) / granule_ * granule_);
    next_ = std::min(end_, begin_ + chunk_ * per_round_);
    return true;
  }
  // Returns chunk number `index` of this round.
  Chunk At(int index) const {
    const size_t offset = std::min(next_, begin_ + chunk_ * static_cast<size_t>(index));
    return {offset, std::min(chunk_, next_ - offset)};
  }

 private:
  size_t end_;
  size_t per_round_;
  size_t max_chunk_;
  size_t granule_;
  size_t next_;
  size_t begin_ = 0;
  size_t chunk_ = 0;
};

}  // namespace dynamiccl::hostccl
