// SPDX-License-Identifier: Apache-2.0
// The one-pass algorithms for few bytes. The data travel with the announcement, so a call has one step, and
// no rank waits until another one has finished reading (docs/algorithms.md; buffer_board.h explains why that
// is safe).
#include <cstring>
#include <vector>

#include "src/hostccl/algorithms/one_pass.h"

namespace dynamiccl::hostccl {
namespace {

// Sums the members' parcels from `at` on, in the order of ranks and rounded once, as NodeSum does.
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

// Every rank sums all parcels for itself, in the same order, so all get the same bits.
Lane CarriedAllReduce(Primitives& slots, const ChannelWork& work) {
  NodeExchange& node = *work.node;
  const size_t count = work.end - work.begin;
  std::memcpy(node.NextParcel(), work.Input(work.begin), count * work.element_bytes);
  co_await node.Carry(slots.reduction().multiplier);
  if (node.shaped()) co_await node.Arrival(node.BookIncoming(count * work.element_bytes));
  SumCarried(node, slots.reduction(), 0, work.Output(work.begin), count);
}

// A parcel has the sender's part of every rank's block, one after another.
Lane CarriedReduceScatter(Primitives& slots, const ChannelWork& work) {
  NodeExchange& node = *work.node;
  const size_t count = work.end - work.begin;
  const size_t bytes = count * work.element_bytes;
  for (int rank = 0; rank < work.n_ranks; ++rank) {
    const auto block = static_cast<size_t>(rank);
    std::memcpy(node.NextParcel() + block * bytes, work.Input(block * work.count + work.begin), bytes);
  }
  co_await node.Carry(slots.reduction().multiplier);
  if (node.shaped()) co_await node.Arrival(node.BookIncoming(bytes));
  SumCarried(node, slots.reduction(), static_cast<size_t>(work.rank) * bytes, work.Output(work.begin), count);
}

// A parcel has the sender's block.
Lane CarriedAllGather(Primitives& /*slots*/, const ChannelWork& work) {
  NodeExchange& node = *work.node;
  const size_t bytes = (work.end - work.begin) * work.element_bytes;
  std::memcpy(node.NextParcel(), work.Input(work.begin), bytes);
  co_await node.Carry({});
  if (node.shaped()) co_await node.Arrival(node.BookIncoming(bytes));
  const auto parcels = node.Carried();
  for (size_t rank = 0; rank < parcels.size(); ++rank) {
    std::memcpy(work.Output(rank * work.count + work.begin), parcels[rank], bytes);
  }
}

}  // namespace dynamiccl::hostccl
