// SPDX-License-Identifier: Apache-2.0
// Says how the one-pass algorithms cut buffers into pieces and sum over the buffers of a node's ranks. See
// one_pass.h.
#include "src/hostccl/algorithms/one_pass.h"

#include <algorithm>
#include <cstring>

namespace dynamiccl::hostccl {
namespace {

// The most outputs that one Combination can have, because `streamed` has one bit for each.
constexpr size_t kMaxOutputs = 64;

}  // namespace

Chunk ShareOf(const Chunk& range, size_t element_bytes, int index, int n) {
  const size_t granule = std::max<size_t>(1, kChunkGranuleBytes / element_bytes);
  const size_t parts = static_cast<size_t>(n);
  const size_t share = ((range.count + parts - 1) / parts + granule - 1) / granule * granule;
  const size_t begin = std::min(range.count, share * static_cast<size_t>(index));
  return {range.offset + begin, std::min(share, range.count - begin)};
}

Chunk NodePieces::PieceAt(size_t index) const {
  const size_t begin = std::min(range_.count, index * piece_elements_);
  return {range_.offset + begin, std::min(piece_elements_, range_.count - begin)};
}

void NodePieces::BookUpTo(size_t pieces) {
  for (; booked_ < pieces; ++booked_) {
    const size_t bytes = PieceAt(booked_).count * element_bytes_;
    if (bytes == 0) return;
    arrivals_[booked_ % kAhead] = node_.BookIncoming(bytes);
  }
}

bool NodePieces::Next() {
  piece_ = PieceAt(next_);
  if (piece_.count == 0) return false;
  BookUpTo(next_ + kAhead);
  ++next_;
  return true;
}

uint64_t StreamedOutputs(size_t touched_bytes) {
  return touched_bytes >= StreamThresholdBytes() ? ~uint64_t{0} : 0;
}

NodeSum::NodeSum(NodeExchange& node, const Reduction& reduction, size_t touched_bytes)
    : node_(node),
      reduction_(reduction),
      // Results that are copied to other processes are read again at once, so they are not written past the
      // caches.
      streamed_(node.copies() ? 0 : StreamedOutputs(touched_bytes)),
      inputs_(static_cast<size_t>(node.size())) {
  if (!reduction.multiplier) return;
  for (int member = 0; member < node.size(); ++member) values_.push_back(node.Multiplier(member));
  for (const ElementValue& value : values_) multipliers_.push_back(&value);
}

void NodeSum::Run(size_t from, size_t count, std::span<std::byte* const> outputs, bool is_final) {
  const size_t bytes = reduction_.element_bytes;
  for (int member = 0; member < node_.size(); ++member) {
    inputs_[static_cast<size_t>(member)] = node_.Input(member, from * bytes, count * bytes);
  }
  if (node_.failed()) return;
  const auto first = outputs.first(std::min(outputs.size(), kMaxOutputs));
  reduction_.CombineN({.inputs = inputs_.data(),
                       .n_inputs = inputs_.size(),
                       .outputs = first.data(),
                       .n_outputs = first.size(),
                       .count = count,
                       .multipliers = multipliers_.empty() ? nullptr : multipliers_.data(),
                       .streamed = streamed_},
                      is_final);
  // The first output may have overwritten the inputs, so further outputs are copied from the first one.
  for (std::byte* const more : outputs.subspan(first.size())) std::memcpy(more, outputs[0], count * bytes);
}

}  // namespace dynamiccl::hostccl
