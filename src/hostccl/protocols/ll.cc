// SPDX-License-Identifier: Apache-2.0
// Moves a chunk by the LL protocol: slot by slot, and in each slot block by block. Only the sender waits for
// credit; the receiver polls the flags of the lines.
#include "src/hostccl/protocols/ll.h"

#include <algorithm>

#include "src/hostccl/chunk_size.h"
#include "src/hostccl/protocols/ll_lines.h"

namespace dynamiccl::hostccl {
namespace {

// Once in 2^27 uses of a slot, that is 2^30 steps, the sender writes the whole slot. So no line keeps an old
// flag until the flags repeat (see NCCL_LL_CLEAN_MASK in NCCL).
constexpr uint64_t kCleanMask = (uint64_t{1} << 27) - 1;

// Returns the flag of a step. It differs from the flag of the slot's previous contents, whose step is smaller
// by kLlSlots. The flag is never zero, because lines are zero before their first use. It repeats every 2^31
// steps.
uint32_t Flag(uint64_t step) {
  return static_cast<uint32_t>(step) | uint32_t{1} << 31;
}

// Returns the number of lines that hold `bytes` of data.
size_t Lines(size_t bytes) {
  return (bytes + kLlLineData - 1) / kLlLineData;
}

}  // namespace

size_t LlPrimitives::ChunkCeilingBytes() const {
  return MostChunkBytes(Protocol::kLL);
}

size_t LlPrimitives::ChunkGrainBytes() const {
  return sizeof(Block);
}

void LlPrimitives::OnStart() {
  done_ = 0;
  in_slot_ = 0;
}

bool LlPrimitives::SlotReady() {
  for (size_t i = 0; i < kMaxPeers; ++i) {
    if (step_.sends && to_[i] != nullptr && !to_[i]->ll_send.HasCredit()) return false;
    // In shared memory the flags show which data have arrived. On an emulated link all lines arrive together,
    // at the arrival of the message.
    if (!step_.receives || from_[i] == nullptr || !from_[i]->ll_receive.shaped()) continue;
    const int64_t arrival = from_[i]->ll_receive.Arrival();
    next_arrival_ns_ = arrival;
    if (arrival == kNotPosted || arrival > MonotonicNanoseconds()) return false;
  }
  next_arrival_ns_ = kNotPosted;
  return true;
}

bool LlPrimitives::Advance() {
  const size_t slot_elements = kLlSlotBytes / reduction_.element_bytes;
  const size_t block_elements = sizeof(Block) / reduction_.element_bytes;
  while (done_ < step_.count) {
    if (in_slot_ == 0 && !SlotReady()) return false;
    const size_t slot_count = std::min(slot_elements, step_.count - done_);
    while (in_slot_ < slot_count) {
      const size_t count = std::min(block_elements, slot_count - in_slot_);
      if (!MoveBlock(count)) return false;
      in_slot_ += count;
      ++pieces_moved_;
    }
    FinishSlot(slot_count);
  }
  return true;
}

// Two cases need no combining. A block that is only received is written directly to its destination. A block
// that is only sent is sent directly from its source.
bool LlPrimitives::MoveBlock(size_t count) {
  std::array<Block, kMaxPeers> received;
  Block combined;
  const size_t at = (done_ + in_slot_) * reduction_.element_bytes;
  const size_t bytes = count * reduction_.element_bytes;
  std::byte* const dst = step_.dst == nullptr ? nullptr : step_.dst + at;
  if (only_receives()) {
    if (step_.receives && !ReceiveBlock(&dst, bytes)) return false;
    SendBlock(dst, bytes);
    return true;
  }
  if (only_sends()) {
    SendBlock(step_.src + at, bytes);
    return true;
  }
  std::byte* const places[kMaxPeers] = {received[0].data(), received[1].data(), received[2].data()};
  if (step_.receives && !ReceiveBlock(places, bytes)) return false;
  PieceOperands operands;
  if (step_.src != nullptr) operands.AddInput(step_.src + at, SourceMultiplier());
  for (size_t i = 0; i < kMaxPeers && step_.receives; ++i) {
    if (from_[i] != nullptr) operands.AddInput(places[i]);
  }
  std::byte* const result = dst != nullptr ? dst : combined.data();
  operands.AddOutput(result);
  CombinePiece(reduction_, operands, count, step_.is_final);
  SendBlock(result, bytes);
  return true;
}

bool LlPrimitives::ReceiveBlock(std::byte* const* to, size_t bytes) const {
  const size_t first = Lines(in_slot_ * reduction_.element_bytes);
  for (size_t i = 0; i < kMaxPeers && from_[i] != nullptr; ++i) {
    const uint64_t step = from_[i]->ll_receive.step();
    const LlLine* const lines = from_[i]->incoming->lines[step % kLlSlots] + first;
    if (!LoadLines(lines, to[i], bytes, Flag(step))) return false;
  }
  return true;
}

void LlPrimitives::SendBlock(const std::byte* data, size_t bytes) const {
  const size_t first = Lines(in_slot_ * reduction_.element_bytes);
  for (size_t i = 0; i < kMaxPeers && step_.sends && to_[i] != nullptr; ++i) {
    const uint64_t step = to_[i]->ll_send.step();
    StoreLines(to_[i]->outgoing->lines[step % kLlSlots] + first, data, bytes, Flag(step));
  }
}

void LlPrimitives::FinishSlot(size_t count) {
  const size_t bytes = count * reduction_.element_bytes;
  for (size_t i = 0; i < kMaxPeers; ++i) {
    if (step_.sends && to_[i] != nullptr) {
      const uint64_t step = to_[i]->ll_send.step();
      LlLine* const lines = to_[i]->outgoing->lines[step % kLlSlots];
      for (size_t line = Lines(bytes); line < kLlSlotLines && (step / kLlSlots & kCleanMask) == kCleanMask;
           ++line) {
        lines[line].store(uint64_t{Flag(step)} << 32, std::memory_order_relaxed);
      }
      to_[i]->ll_send.Post(bytes * 2);
    }
    if (step_.receives && from_[i] != nullptr) from_[i]->ll_receive.Release();
  }
  done_ += count;
  in_slot_ = 0;
}

}  // namespace dynamiccl::hostccl
