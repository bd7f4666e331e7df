// SPDX-License-Identifier: Apache-2.0
// The Simple protocol: whole slots with credits. The counter that announces a slot is stored after the slot's
// data. It has the least overhead for each byte and the highest latency of the three protocols.
#pragma once

#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

// The primitives over Simple's slots. See Primitives for owner and thread.
class SimplePrimitives final : public Primitives {
 public:
  using Primitives::Primitives;

  bool Advance() override;

 private:
  void OnStart() override;
  size_t ChunkCeilingBytes() const override;
  size_t ChunkGrainBytes() const override;
  // Returns true if the next piece can move: it has arrived from every sending peer, and every receiving peer
  // has given credit.
  bool Ready();
  // Combines one piece from the peers' slots and this rank's input into all outputs, then posts and releases.
  void MovePiece(size_t count);

  // Returns true if all pieces that were taken early have arrived by the link's time.
  bool Arrived();

  size_t done_ = 0;         // elements of the chunk that are done
  int64_t arrived_ns_ = 0;  // latest arrival of the pieces taken so far
  size_t piece_ = 0;        // elements of a slot; both sides compute it from the chunk
};

}  // namespace dynamiccl::hostccl
