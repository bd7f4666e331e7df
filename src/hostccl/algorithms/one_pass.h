// SPDX-License-Identifier: Apache-2.0
// The common parts of the one-pass algorithms: which elements a rank of the node works on, in which pieces,
// and the sum over all ranks' buffers. A one-pass algorithm reads its peers' buffers directly
// (docs/algorithms.md).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "src/hostccl/algorithms/channel_work.h"
#include "src/hostccl/node_exchange.h"

namespace dynamiccl::hostccl {

// Returns the part of `range` that belongs to member `index` of `n`. Every part but the last consists of
// whole cache lines.
Chunk ShareOf(const Chunk& range, size_t element_bytes, int index, int n);

// Walks over a range in pieces. On emulated links each piece is a message from every other rank of the node,
// and the messages of the next pieces are booked on the links in advance. The object is a local variable of a
// lane, that is, of an algorithm's coroutine (src/hostccl/lane.h).
class NodePieces {
 public:
  // Without `piece_bytes` a piece has NodeExchange::PieceBytes bytes.
  NodePieces(NodeExchange& node, const Chunk& range, size_t element_bytes)
      : NodePieces(node, range, element_bytes, node.PieceBytes()) {}
  NodePieces(NodeExchange& node, const Chunk& range, size_t element_bytes, size_t piece_bytes)
      : node_(node),
        range_(range),
        element_bytes_(element_bytes),
        piece_elements_(piece_bytes / element_bytes) {}

  // Moves to the next piece; returns false after the last one. The caller then waits for
  // NodeExchange::Enter(arrival_ns()).
  bool Next();
  const Chunk& piece() const { return piece_; }
  int64_t arrival_ns() const { return arrivals_[(next_ - 1) % kAhead]; }

 private:
  // Number of messages that are booked and have not arrived: as many as a FIFO has slots.
  static constexpr size_t kAhead = kSlots;

  Chunk PieceAt(size_t index) const;
  void BookUpTo(size_t pieces);

  NodeExchange& node_;
  Chunk range_;
  size_t element_bytes_;
  size_t piece_elements_;
  size_t booked_ = 0;
  size_t next_ = 0;
  Chunk piece_;
  std::array<int64_t, kAhead> arrivals_{};
};

// Sums the members' send buffers in the order of their ranks, in the compute type, and rounds once. The
// result depends neither on whether buffers are mapped or copied, nor on which rank computes it.
class NodeSum {
 public:
  // Make this object after NodeExchange::Announce. `touched_bytes` is the number of bytes that this rank
  // reads and writes in the call; large calls write past the caches. `reduction` must outlive the object.
  NodeSum(NodeExchange& node, const Reduction& reduction, size_t touched_bytes);

  // Stores the sum of elements [from, from + count) of all send buffers to each output. If `is_final`, the
  // operator's division is applied too. Call it between NodeExchange::Enter and Leave. After a failure of the
  // node it stores nothing.
  void Run(size_t from, size_t count, std::span<std::byte* const> outputs, bool is_final);

 private:
  NodeExchange& node_;
  const Reduction& reduction_;
  uint64_t streamed_;
  std::vector<const std::byte*> inputs_;
  std::vector<ElementValue> values_;
  std::vector<const ElementValue*> multipliers_;  // empty: the operator has none
};

// One channel's part of a small call, whose data travel with the announcement of buffers. The call is an
// AllReduce, ReduceScatter or AllGather. The part is elements [begin, begin + count) of each block of
// `block_count` elements.
struct CarriedPart {
  Collective collective = Collective::kAllReduce;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  size_t element_bytes = 1;
  size_t block_count = 0;
  size_t begin = 0;
  size_t count = 0;
};
// Returns the number of bytes that a rank announces. The call can be carried only if NodeExchange::Carries
// accepts so many.
size_t ParcelBytes(const CarriedPart& part, int n_ranks);
// Copies this rank's data to its next parcel. The caller must then call NodeExchange::PostParcel.
void FillParcel(NodeExchange& node, const CarriedPart& part);
// Combines all members' parcels and stores the result. Call it once NodeExchange::AllCarried is true.
void TakeParcels(NodeExchange& node, const CarriedPart& part, const Reduction& reduction);
// Runs a small call as a lane: fills the parcel, announces it, waits for the other parcels, and stores the
// result.
Lane RunCarried(Collective collective, Primitives& slots, const ChannelWork& work);

// Returns a value for Combination::streamed: all bits set if a call that touches so many bytes should write
// past the caches, otherwise none.
uint64_t StreamedOutputs(size_t touched_bytes);

}  // namespace dynamiccl::hostccl
