// SPDX-License-Identifier: Apache-2.0
// The LL128 protocol: lines of 120 bytes of data and one 8-byte flag (NCCL's prims_ll128.h). The receiver
// waits for a line, not for a slot, at 128/120 of the bytes.
//
// A GPU may rely on a warp's 128-byte store being seen whole; no CPU promises that. Here the flag is stored
// with release order after the line's data and loaded with acquire order before it, which holds on every
// machine: LL128 needs no platform guard.
#pragma once

#include <array>

#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

class Ll128Primitives final : public Primitives {
 public:
  using Primitives::Primitives;

  bool Advance() override;

 private:
  // Lines that are waited for, combined and passed on together: few enough that a rank in the middle starts
  // early, enough that the reduction works on more than a few packs.
  static constexpr size_t kBlockLines = 8;
  using Block = std::array<std::byte, kBlockLines * kLl128LineData>;

  void OnStart() override;
  size_t ChunkCeilingBytes() const override;
  size_t ChunkGrainBytes() const override;
  bool SlotReady();
  // False while lines of the block are missing; what is there is unpacked already.
  bool ReceiveBlock(size_t bytes);
  // Where the lines of peer `i` are unpacked to.
  std::byte* Target(size_t i);
  bool combines() const { return step_.src != nullptr || from_[1] != nullptr || step_.is_final; }
  // The block's result in one piece of memory.
  const std::byte* CombineBlock(size_t count);
  void SendBlock(const std::byte* data, size_t bytes);
  void FinishSlot(size_t count);

  size_t done_ = 0;                           // elements of the chunk, in whole slots
  size_t in_slot_ = 0;                        // elements of the current slot
  std::array<size_t, kMaxPeers> unpacked_{};  // bytes of the block that has not come whole
  std::array<Block, kMaxPeers> received_;
  Block sent_;
};

}  // namespace dynamiccl::hostccl
