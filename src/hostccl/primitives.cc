// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/primitives.h"

#include <algorithm>
#include <cstring>

namespace dynamiccl::hostccl {
namespace {

// Five operands fit a 48 KiB first-level cache.
constexpr size_t kBlockBytes = 8 << 10;

std::array<Connection*, kMaxPeers> Resolve(Connection* channel, const Peers& peers) {
  std::array<Connection*, kMaxPeers> connections{};
  size_t next = 0;
  for (const int rank : peers.ranks) {
    if (rank >= 0) connections[next++] = &channel[rank];
  }
  return connections;
}

void Copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
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

void PieceOperands::AddInput(const std::byte* data) {
  if (data != nullptr) *std::find(in.begin(), in.end(), nullptr) = data;
}

void PieceOperands::AddOutput(std::byte* data) {
  if (data != nullptr) *std::find(out.begin(), out.end(), nullptr) = data;
}

void CombinePiece(const Reduction& reduction, const PieceOperands& operands, size_t count, bool divide) {
  const auto& [in, out] = operands;
  const size_t block = kBlockBytes / reduction.element_bytes;
  for (size_t done = 0; done < count; done += block) {
    const size_t n = std::min(block, count - done);
    const size_t at = done * reduction.element_bytes;
    const size_t bytes = n * reduction.element_bytes;
    if (in[1] == nullptr) {
      Copy(out[0] + at, in[0] + at, bytes);
    } else {
      reduction.combine(out[0] + at, in[0] + at, in[1] + at, n);
      for (size_t more = 2; more < in.size() && in[more] != nullptr; ++more) {
        reduction.combine(out[0] + at, out[0] + at, in[more] + at, n);
      }
    }
    if (divide && reduction.divide != nullptr) reduction.divide(out[0] + at, n, reduction.n_ranks);
    for (size_t copy = 1; copy < out.size() && out[copy] != nullptr; ++copy) {
      Copy(out[copy] + at, out[0] + at, bytes);
    }
  }
}

}  // namespace dynamiccl::hostccl
