// SPDX-License-Identifier: Apache-2.0
// The Simple protocol: whole slots with credits. After the slot's data the sender stores a counter, which
// announces the slot. Of the three protocols it has the least overhead for each byte and the highest latency.
#pragma once

#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

// The primitives over Simple's slots. The comment of class Primitives says who owns the object and which
// thread uses it.
class SimplePrimitives final : public Primitives {
 public:
  using Primitives::Primitives;

  bool Advance() override;

 private:
  void OnStart() override;
  size_t ChunkCeilingBytes() const override;
  size_t ChunkGrainBytes() const override;
  // Returns true if the next piece can be moved: it has arrived from every sending peer, and every receiving
  // peer has given credit.
  bool Ready();
  // Combines one piece of the peers' slots and of this rank's input, and stores it to all outputs. Then it
  // posts the output slots and releases the input slots.
  void MovePiece(size_t count);

  // Returns true if all pieces that were copied early have now arrived by the time of the emulated link.
  bool Arrived();

  size_t done_ = 0;         // elements of the chunk that are done
  int64_t arrived_ns_ = 0;  // latest arrival of the pieces taken so far
  size_t piece_ = 0;        // elements of a slot; both sides compute it from the chunk
};

}  // namespace dynamiccl::hostccl
