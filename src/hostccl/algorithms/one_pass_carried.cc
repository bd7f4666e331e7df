// SPDX-License-Identifier: Apache-2.0
// The one-pass algorithms for small calls. The data travel with the announcement of the buffers, so a call
// has one step. No rank waits until another one has finished reading; buffer_board.h explains why that is
// safe. See docs/algorithms.md.
#include <cstring>
#include <vector>

#include "src/hostccl/algorithms/one_pass.h"

namespace dynamiccl::hostccl {
namespace {

// Sums the members' parcels from byte `at` on, in the order of ranks, and rounds once, as NodeSum does. So
// all ranks get the same bits.
void SumCarried(NodeExchange& node, const Reduction& reduction, size_t at, std::byte* output, size_t count) {
  const auto inputs = node.Carried(at);
  std::vector<ElementValue> values;
  std::vector<const ElementValue*> multipliers;
  if (reduction.multiplier) {
    for (int member = 0; member < node.size(); ++member) values.push_back(node.CarriedMultiplier(member));
    for (const ElementValue& value : values) multipliers.push_back(&value);
  }
  reduction.CombineN({.inputs = inputs.data(),
                      .n_inputs = inputs.size(),
                      .outputs = &output,
                      .n_outputs = 1,
                      .count = count,
                      .multipliers = multipliers.empty() ? nullptr : multipliers.data()},
                     true);
}

}  // namespace

// A parcel of ReduceScatter contains the sender's part of every rank's block, one after another.
size_t ParcelBytes(const CarriedPart& part, int n_ranks) {
  const size_t blocks = part.collective == Collective::kReduceScatter ? static_cast<size_t>(n_ranks) : 1;
  return blocks * part.count * part.element_bytes;
}

void FillParcel(NodeExchange& node, const CarriedPart& part) {
  const size_t bytes = part.count * part.element_bytes;
  const size_t stride = part.block_count * part.element_bytes;
  const std::byte* from = part.send + part.begin * part.element_bytes;
  std::byte* to = node.NextParcel();
  std::memcpy(to, from, bytes);
  if (part.collective != Collective::kReduceScatter) return;
  for (int block = 1; block < node.size(); ++block) std::memcpy(to += bytes, from += stride, bytes);
}

void TakeParcels(NodeExchange& node, const CarriedPart& part, const Reduction& reduction) {
  const size_t bytes = part.count * part.element_bytes;
  std::byte* const to = part.recv + part.begin * part.element_bytes;
  if (part.collective != Collective::kAllGather) {
    const size_t at = part.collective == Collective::kReduceScatter ? bytes : 0;
    return SumCarried(node, reduction, at * static_cast<size_t>(node.self()), to, part.count);
  }
  const auto parcels = node.Carried();
  for (size_t rank = 0; rank < parcels.size(); ++rank) {
    std::memcpy(to + rank * part.block_count * part.element_bytes, parcels[rank], bytes);
  }
}

Lane RunCarried(Collective collective, Primitives& slots, const ChannelWork& work) {
  NodeExchange& node = *work.node;
  const CarriedPart part{
      collective, work.send, work.recv, work.element_bytes, work.count, work.begin, work.end - work.begin};
  FillParcel(node, part);
  co_await node.Carry(slots.reduction().multiplier);
  if (node.shaped()) co_await node.Arrival(node.BookIncoming(part.count * part.element_bytes));
  TakeParcels(node, part, slots.reduction());
}

}  // namespace dynamiccl::hostccl
