// SPDX-License-Identifier: Apache-2.0
// The common parts of the primitives of all protocols. See primitives.h.
#include "src/hostccl/primitives.h"

#include <algorithm>

namespace dynamiccl::hostccl {
namespace {

// Returns the connections of the peers, without gaps for unused places.
std::array<Connection*, kMaxPeers> Resolve(Connection* channel, const Peers& peers) {
  std::array<Connection*, kMaxPeers> connections{};
  size_t next = 0;
  for (const int rank : peers.ranks) {
    if (rank >= 0) connections[next++] = &channel[rank];
  }
  return connections;
}

}  // namespace

void Primitives::Connect(Peers from, Peers to) {
  from_ = Resolve(channel_, from);
  to_ = Resolve(channel_, to);
}

Primitives::Awaiter Primitives::Start(const ChunkStep& step) {
  step_ = step;
  step_.receives = step.receives && from_[0] != nullptr;
  step_.sends = step.sends && to_[0] != nullptr;
  OnStart();
  return Awaiter{*this};
}

size_t Primitives::MaxChunk() const {
  const size_t ceiling = ChunkCeilingBytes();
  const size_t wanted = chunk_bytes_ == 0 ? ceiling : std::min(chunk_bytes_, ceiling);
  const size_t grain = ChunkGrainBytes();
  return std::max(grain, wanted / grain * grain) / reduction_.element_bytes;
}

void PieceOperands::AddInput(const std::byte* data, const ElementValue* multiplier) {
  multipliers[n_in] = multiplier;
  in[n_in++] = data;
}

void PieceOperands::AddOutput(std::byte* data) {
  out[n_out++] = data;
}

void CombinePiece(const Reduction& reduction, const PieceOperands& operands, size_t count, bool is_final) {
  reduction.CombineN(
      {.inputs = operands.in.data(),
       .n_inputs = operands.n_in,
       .outputs = operands.out.data(),
       .n_outputs = operands.n_out,
       .count = count,
       // Only the first input can be this rank's own, and only that one can have a factor.
       .multipliers = operands.multipliers[0] != nullptr ? operands.multipliers.data() : nullptr},
      is_final);
}

}  // namespace dynamiccl::hostccl
