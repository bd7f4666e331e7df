// SPDX-License-Identifier: Apache-2.0
// Moves a chunk by the Simple protocol, piece by piece. See simple.h.
#include "src/hostccl/protocols/simple.h"

#include <algorithm>

#include "src/hostccl/chunk_size.h"

namespace dynamiccl::hostccl {
namespace {

// In bytes. A chunk is moved in two pieces, so that the next rank starts on the first piece while the second
// is filled. Pieces are not made smaller than this, because posting them would then cost more than moving
// them.
constexpr size_t kMinPieceBytes = 16 << 10;
constexpr size_t kPieceGranule = 4 << 10;
constexpr size_t kPiecesPerChunk = 2;
// In nanoseconds. A receive that does not pass data on may copy a piece at most this long before the piece
// arrives over an emulated link. The copy then overlaps with the transfer, and slots become free in time even
// if the link holds more bytes than the slots (latency x bandwidth). Pieces that are copied early make the
// sender book the link early. So the time is much shorter than the 100 ms within which a change of the link
// must take effect.
constexpr int64_t kAheadNs = 20'000'000;

}  // namespace

size_t SimplePrimitives::ChunkCeilingBytes() const {
  return MostChunkBytes(Protocol::kSimple);
}

size_t SimplePrimitives::ChunkGrainBytes() const {
  return kPieceGranule;
}

// Sender and receiver cut the chunk in the same way, because the size of a piece depends only on the chunk.
void SimplePrimitives::OnStart() {
  const size_t half =
      (step_.count * reduction_.element_bytes / kPiecesPerChunk + kPieceGranule - 1) / kPieceGranule;
  piece_ = std::clamp(half * kPieceGranule, kMinPieceBytes, kSlotBytes) / reduction_.element_bytes;
  done_ = 0;
  arrived_ns_ = 0;
}

// A piece may be taken kAheadNs before its arrival only if it is not passed on.
bool SimplePrimitives::Ready() {
  if (step_.receives) {
    for (Connection* peer : from_) {
      if (peer == nullptr) break;
      const int64_t arrival = peer->simple_receive.Arrival();
      const int64_t from = arrival == kNotPosted || step_.sends ? arrival : arrival - kAheadNs;
      if (from > 0 && from > MonotonicNanoseconds()) {
        next_arrival_ns_ = from;
        return false;
      }
      arrived_ns_ = std::max(arrived_ns_, arrival);
    }
  }
  next_arrival_ns_ = kNotPosted;
  if (!step_.sends) return true;
  return std::all_of(to_.begin(), to_.end(),
                     [](Connection* peer) { return peer == nullptr || peer->simple_send.HasCredit(); });
}

bool SimplePrimitives::Advance() {
  while (done_ < step_.count) {
    if (!Ready()) return false;
    MovePiece(std::min(piece_, step_.count - done_));
  }
  return Arrived();
}

// Returns whether the pieces that were taken early have arrived by now. The primitive ends only then.
bool SimplePrimitives::Arrived() {
  const bool waits = arrived_ns_ > 0 && arrived_ns_ > MonotonicNanoseconds();
  next_arrival_ns_ = waits ? arrived_ns_ : kNotPosted;
  return !waits;
}

void SimplePrimitives::MovePiece(size_t count) {
  const size_t at = done_ * reduction_.element_bytes;
  PieceOperands operands;
  if (step_.src != nullptr) operands.AddInput(step_.src + at, SourceMultiplier());
  if (step_.dst != nullptr) operands.AddOutput(step_.dst + at);
  for (size_t i = 0; i < from_.size(); ++i) {
    if (step_.receives && from_[i] != nullptr) {
      operands.AddInput(from_[i]->incoming->slots[from_[i]->simple_receive.step() % kSlots]);
    }
    if (step_.sends && to_[i] != nullptr) {
      operands.AddOutput(to_[i]->outgoing->slots[to_[i]->simple_send.step() % kSlots]);
    }
  }
  CombinePiece(reduction_, operands, count, step_.is_final);
  for (size_t i = 0; i < from_.size(); ++i) {
    if (step_.sends && to_[i] != nullptr) to_[i]->simple_send.Post(count * reduction_.element_bytes);
    if (step_.receives && from_[i] != nullptr) from_[i]->simple_receive.Release();
  }
  done_ += count;
  ++pieces_moved_;
}

}  // namespace dynamiccl::hostccl
