// SPDX-License-Identifier: Apache-2.0
// The Simple protocol: whole slots with credits; the counter that announces a slot follows the data.
#pragma once

#include "src/hostccl/primitives.h"

namespace dynamiccl::hostccl {

class SimplePrimitives final : public Primitives {
 public:
  using Primitives::Primitives;

  bool Advance() override;

 private:
  void OnStart() override;
  size_t ChunkCeilingBytes() const override;
  size_t ChunkGrainBytes() const override;
  bool Ready();
  void MovePiece(size_t count);

  bool Arrived();

  size_t done_ = 0;         // elements of the chunk
  int64_t arrived_ns_ = 0;  // latest arrival of the pieces that were taken in
  size_t piece_ = 0;        // elements of a slot; equal on both sides, as it follows from the chunk alone
};

}  // namespace dynamiccl::hostccl
