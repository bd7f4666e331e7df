// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/protocols/ll.h"

#include <algorithm>
#include <cstring>

#include "src/hostccl/chunk_size.h"

namespace dynamiccl::hostccl {
namespace {

// Every 2^27 steps of a slot all its lines are written, so that no line keeps a flag until the 32-bit flags
// come round again (NCCL_LL_CLEAN_MASK).
constexpr uint64_t kCleanMask = (uint64_t{1} << 27) - 1;

using Line = std::atomic<uint64_t>;

// Never that of what the slot held before, as steps of a slot differ by kLlSlots.
uint32_t Flag(uint64_t step) {
  return static_cast<uint32_t>(step + 1);
}

size_t Lines(size_t bytes) {
  return (bytes + kLlLineData - 1) / kLlLineData;
}

// False when a line is not there yet.
bool Unpack(const Line* lines, size_t count, uint32_t flag, std::byte* data) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t line = lines[i].load(std::memory_order_relaxed);
    if (static_cast<uint32_t>(line >> 32) != flag) return false;
    const auto value = static_cast<uint32_t>(line);
    std::memcpy(data + i * kLlLineData, &value, kLlLineData);
  }
  return true;
}

void Pack(Line* lines, size_t count, uint32_t flag, const std::byte* data) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t value = 0;
    std::memcpy(&value, data + i * kLlLineData, kLlLineData);
    lines[i].store(uint64_t{flag} << 32 | value, std::memory_order_relaxed);
  }
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
    // Over shared memory the lines speak for themselves; on an emulated link they arrive when the message
    // does.
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
      if (step_.receives && !ReceiveBlock(count * reduction_.element_bytes)) return false;
      MoveBlock(count);
      in_slot_ += count;
      ++pieces_moved_;
    }
    FinishSlot(slot_count);
  }
  return true;
}

bool LlPrimitives::ReceiveBlock(size_t bytes) {
  const size_t first = Lines(in_slot_ * reduction_.element_bytes);
  for (size_t i = 0; i < kMaxPeers; ++i) {
    if (from_[i] == nullptr) break;
    const uint64_t step = from_[i]->ll_receive.step();
    const Line* const lines = from_[i]->incoming->lines[step % kLlSlots] + first;
    if (!Unpack(lines, Lines(bytes), Flag(step), received_[i].data())) return false;
  }
  return true;
}

void LlPrimitives::MoveBlock(size_t count) {
  const size_t at = (done_ + in_slot_) * reduction_.element_bytes;
  const size_t bytes = count * reduction_.element_bytes;
  PieceOperands operands;
  if (step_.src != nullptr) operands.AddInput(step_.src + at, SourceMultiplier());
  if (step_.dst != nullptr) operands.AddOutput(step_.dst + at);
  for (size_t i = 0; i < kMaxPeers && step_.receives; ++i) {
    if (from_[i] != nullptr) operands.AddInput(received_[i].data());
  }
  if (step_.sends) operands.AddOutput(sent_.data());
  CombinePiece(reduction_, operands, count, step_.is_final);
  for (size_t i = 0; i < kMaxPeers && step_.sends; ++i) {
    if (to_[i] == nullptr) break;
    const uint64_t step = to_[i]->ll_send.step();
    Line* const lines = to_[i]->outgoing->lines[step % kLlSlots] + Lines(in_slot_ * reduction_.element_bytes);
    Pack(lines, Lines(bytes), Flag(step), sent_.data());
  }
}

void LlPrimitives::FinishSlot(size_t count) {
  const size_t bytes = count * reduction_.element_bytes;
  for (size_t i = 0; i < kMaxPeers; ++i) {
    if (step_.sends && to_[i] != nullptr) {
      const uint64_t step = to_[i]->ll_send.step();
      Line* const lines = to_[i]->outgoing->lines[step % kLlSlots];
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
