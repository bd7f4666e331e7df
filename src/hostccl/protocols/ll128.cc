// SPDX-License-Identifier: Apache-2.0
// Moves a chunk by the LL128 protocol: slot by slot, and in each slot block by block of eight lines.
#include "src/hostccl/protocols/ll128.h"

#include <algorithm>
#include <cstring>

#include "src/hostccl/chunk_size.h"

namespace dynamiccl::hostccl {
namespace {

// In bytes of data: whole LL128 lines that are also whole cache lines.
constexpr size_t kGrainBytes = 16 * kLl128LineData;
static_assert(kGrainBytes % 64 == 0);

// Returns the flag of a step. It differs from the flag of the slot's previous contents. 64 bits are enough
// that it never repeats.
uint64_t Flag(uint64_t step) {
  return step + 1;
}

// Returns the number of lines that hold `bytes` of data.
size_t Lines(size_t bytes) {
  return (bytes + kLl128LineData - 1) / kLl128LineData;
}

// Copies data out of lines, from byte `done` on. Returns the number of bytes before the first line that has
// not arrived.
size_t Unpack(const Ll128Line* lines, size_t done, size_t bytes, uint64_t flag, std::byte* data) {
  while (done < bytes) {
    const Ll128Line& line = lines[done / kLl128LineData];
    if (line.flag.load(std::memory_order_acquire) != flag) break;
    if (bytes - done < kLl128LineData) {
      std::memcpy(data + done, line.data.data(), bytes - done);
      return bytes;
    }
    // The size is constant, so that the copy compiles to a few wide moves.
    std::memcpy(data + done, line.data.data(), kLl128LineData);
    done += kLl128LineData;
  }
  return done;
}

// Writes data as lines. The flag of each line is stored after the line's data.
void Pack(Ll128Line* lines, const std::byte* data, size_t bytes, uint64_t flag) {
  for (size_t done = 0; done < bytes; done += kLl128LineData) {
    Ll128Line& line = lines[done / kLl128LineData];
    if (bytes - done < kLl128LineData) {
      std::memcpy(line.data.data(), data + done, bytes - done);
    } else {
      std::memcpy(line.data.data(), data + done, kLl128LineData);
    }
    line.flag.store(flag, std::memory_order_release);
  }
}

}  // namespace

size_t Ll128Primitives::ChunkCeilingBytes() const {
  return MostChunkBytes(Protocol::kLL128);
}

size_t Ll128Primitives::ChunkGrainBytes() const {
  return kGrainBytes;
}

void Ll128Primitives::OnStart() {
  done_ = 0;
  in_slot_ = 0;
  unpacked_.fill(0);
}

bool Ll128Primitives::SlotReady() {
  for (size_t i = 0; i < kMaxPeers; ++i) {
    if (step_.sends && to_[i] != nullptr && !to_[i]->ll128_send.HasCredit()) return false;
    // In shared memory the flags show which data have arrived. On an emulated link all lines arrive together,
    // at the arrival of the message.
    if (!step_.receives || from_[i] == nullptr || !from_[i]->ll128_receive.shaped()) continue;
    const int64_t arrival = from_[i]->ll128_receive.Arrival();
    next_arrival_ns_ = arrival;
    if (arrival == kNotPosted || arrival > MonotonicNanoseconds()) return false;
  }
  next_arrival_ns_ = kNotPosted;
  return true;
}

bool Ll128Primitives::Advance() {
  const size_t slot_elements = kLl128SlotBytes / reduction_.element_bytes;
  const size_t block_elements = sizeof(Block) / reduction_.element_bytes;
  while (done_ < step_.count) {
    if (in_slot_ == 0 && !SlotReady()) return false;
    const size_t slot_count = std::min(slot_elements, step_.count - done_);
    while (in_slot_ < slot_count) {
      const size_t count = std::min(block_elements, slot_count - in_slot_);
      if (step_.receives && !ReceiveBlock(count * reduction_.element_bytes)) return false;
      SendBlock(CombineBlock(count), count * reduction_.element_bytes);
      unpacked_.fill(0);
      in_slot_ += count;
      ++pieces_moved_;
    }
    FinishSlot(slot_count);
  }
  return true;
}

std::byte* Ll128Primitives::Target(size_t i) {
  if (combines() || step_.dst == nullptr) return received_[i].data();
  return step_.dst + (done_ + in_slot_) * reduction_.element_bytes;
}

bool Ll128Primitives::ReceiveBlock(size_t bytes) {
  const size_t first = Lines(in_slot_ * reduction_.element_bytes);
  bool complete = true;
  for (size_t i = 0; i < kMaxPeers && from_[i] != nullptr; ++i) {
    const uint64_t step = from_[i]->ll128_receive.step();
    const Ll128Line* const lines = from_[i]->incoming->lines128[step % kLl128Slots] + first;
    unpacked_[i] = Unpack(lines, unpacked_[i], bytes, Flag(step), Target(i));
    complete &= unpacked_[i] == bytes;
  }
  return complete;
}

const std::byte* Ll128Primitives::CombineBlock(size_t count) {
  const size_t at = (done_ + in_slot_) * reduction_.element_bytes;
  if (step_.receives && !combines()) return Target(0);
  PieceOperands operands;
  if (step_.src != nullptr) operands.AddInput(step_.src + at, SourceMultiplier());
  for (size_t i = 0; i < kMaxPeers && step_.receives && from_[i] != nullptr; ++i) {
    operands.AddInput(received_[i].data());
  }
  // Data that are only sent need no combining and are sent from where they are.
  const bool as_is = operands.n_in == 1 && SourceMultiplier() == nullptr && !step_.is_final;
  if (as_is && step_.dst == nullptr) return operands.in[0];
  std::byte* const result = step_.dst != nullptr ? step_.dst + at : sent_.data();
  operands.AddOutput(result);
  CombinePiece(reduction_, operands, count, step_.is_final);
  return result;
}

void Ll128Primitives::SendBlock(const std::byte* data, size_t bytes) {
  const size_t first = Lines(in_slot_ * reduction_.element_bytes);
  for (size_t i = 0; i < kMaxPeers && step_.sends && to_[i] != nullptr; ++i) {
    const uint64_t step = to_[i]->ll128_send.step();
    Pack(to_[i]->outgoing->lines128[step % kLl128Slots] + first, data, bytes, Flag(step));
  }
}

void Ll128Primitives::FinishSlot(size_t count) {
  const size_t wire_bytes = Lines(count * reduction_.element_bytes) * sizeof(Ll128Line);
  for (size_t i = 0; i < kMaxPeers; ++i) {
    if (step_.sends && to_[i] != nullptr) to_[i]->ll128_send.Post(wire_bytes);
    if (step_.receives && from_[i] != nullptr) from_[i]->ll128_receive.Release();
  }
  done_ += count;
  in_slot_ = 0;
}

}  // namespace dynamiccl::hostccl
