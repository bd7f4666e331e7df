// SPDX-License-Identifier: Apache-2.0
// The shapes of the calls that one communicator has seen: collective, bytes, type and operator. A job repeats
// its shapes, so one that was never there, after a while in which none was new, says that its batch or its
// buckets have changed.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective_call.h"

namespace dynamiccl {

// One thread at a time; no allocation. A function of the calls alone, so equal on all ranks. A call whose
// shape is not new changes nothing here, so it need not be shown.
class SeenCalls {
 public:
  // Shapes that are remembered. One for which there is no room is not new, which a job of more shapes pays
  // with changes that are not seen.
  static constexpr size_t kShapes = 256;

  // `number`: of the call among the communicator's calls, from 1, growing. Whether its shape is new.
  bool IsNew(const CollectiveCall& call, uint64_t number);
  // Calls up to `number` since the last new shape.
  uint64_t CallsSinceNew(uint64_t number) const { return number - last_new_; }
  void Forget() { *this = SeenCalls(); }

 private:
  std::array<uint64_t, kShapes> shapes_{};  // each at its place or behind it; 0: nothing here
  size_t known_ = 0;                        // shapes
  uint64_t last_new_ = 0;
};

}  // namespace dynamiccl
