// SPDX-License-Identifier: Apache-2.0
// The LL protocol. Every 8-byte store carries 4 bytes of data and a 4-byte flag, so the receiver needs no
// counter. The latency is lower than with Simple, but twice as many bytes are moved (NCCL's prims_ll.h).
#pragma once

#include <array>

#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

// The primitives over LL's lines. The comment of class Primitives says who owns the object and which thread
// uses it.
class LlPrimitives final : public Primitives {
 public:
  using Primitives::Primitives;

  bool Advance() override;

 private:
  // Number of lines that are awaited, combined and passed on together. They hold 256 bytes of data: few
  // enough to keep the latency of a line, and enough for the reduction to use vector instructions.
  static constexpr size_t kBlockLines = 64;
  using Block = std::array<std::byte, kBlockLines * kLlLineData>;

  void OnStart() override;
  size_t ChunkCeilingBytes() const override;
  size_t ChunkGrainBytes() const override;
  // Returns true if there is credit to send and, on emulated links, the message has arrived from every peer.
  bool SlotReady();
  // Moves one block of `count` elements. Returns false if some of its lines have not arrived.
  bool MoveBlock(size_t count);
  // Copies the block of each sending peer to its place in `to`. Returns false if lines are missing.
  bool ReceiveBlock(std::byte* const* to, size_t bytes) const;
  // Stores the block as lines for each receiving peer.
  void SendBlock(const std::byte* data, size_t bytes) const;
  // Returns true if the received data are the result, because nothing is combined with them.
  bool only_receives() const {
    return step_.src == nullptr && step_.dst != nullptr && from_[1] == nullptr && !step_.is_final;
  }
  // Returns true if the source is sent unchanged and nothing is received or stored.
  bool only_sends() const {
    return !step_.receives && step_.dst == nullptr && !step_.is_final && SourceMultiplier() == nullptr;
  }
  // Posts the slot to the receivers and releases the senders' slots, after the last block of a slot.
  void FinishSlot(size_t count);

  size_t done_ = 0;     // elements of the chunk that are done, in whole slots
  size_t in_slot_ = 0;  // elements of the current slot that are done
};

}  // namespace dynamiccl::hostccl
