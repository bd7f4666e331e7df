// SPDX-License-Identifier: Apache-2.0
// The LL128 protocol: lines of 120 bytes of data and one 8-byte flag (NCCL's prims_ll128.h). The receiver
// waits for a line and not for a whole slot. In return 128 bytes are moved for every 120 bytes of data.
//
// A GPU may rely on a warp's 128-byte store becoming visible as a whole; no CPU promises that. Here the flag
// is stored with release order after the line's data and loaded with acquire order before the data. That is
// correct on every machine, so hostccl offers LL128 without a check of the platform.
#pragma once

#include <array>

#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

// The primitives over LL128's lines. The comment of class Primitives says who owns the object and which
// thread uses it. The object is large because it holds blocks of data.
class Ll128Primitives final : public Primitives {
 public:
  using Primitives::Primitives;

  bool Advance() override;

 private:
  // Number of lines that are awaited, combined and passed on together. They are few enough that a rank in the
  // middle of a ring starts early, and enough for the reduction to use vector instructions well.
  static constexpr size_t kBlockLines = 8;
  using Block = std::array<std::byte, kBlockLines * kLl128LineData>;

  void OnStart() override;
  size_t ChunkCeilingBytes() const override;
  size_t ChunkGrainBytes() const override;
  // Returns true if there is credit to send and, on emulated links, the message has arrived from every peer.
  bool SlotReady();
  // Unpacks the lines of the block that have arrived. Returns false while lines are missing.
  bool ReceiveBlock(size_t bytes);
  // Returns the address to which the lines of peer number `i` are unpacked.
  std::byte* Target(size_t i);
  // Returns true if the data must be combined and not just passed on from one peer.
  bool combines() const { return step_.src != nullptr || from_[1] != nullptr || step_.is_final; }
  // Combines the block's inputs and returns the result in contiguous memory.
  const std::byte* CombineBlock(size_t count);
  // Stores the block as lines for each receiving peer.
  void SendBlock(const std::byte* data, size_t bytes);
  // Posts the slot to the receivers and releases the senders' slots, after the last block of a slot.
  void FinishSlot(size_t count);

  size_t done_ = 0;                           // elements of the chunk that are done, in whole slots
  size_t in_slot_ = 0;                        // elements of the current slot that are done
  std::array<size_t, kMaxPeers> unpacked_{};  // bytes unpacked of a block that is incomplete
  std::array<Block, kMaxPeers> received_;
  Block sent_;
};

}  // namespace dynamiccl::hostccl
