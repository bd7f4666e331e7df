// SPDX-License-Identifier: Apache-2.0
// The shapes of the calls that one communicator has seen: collective, bytes, type and operator. A job repeats
// its shapes. So a new shape, after a while in which none was new, says that the batch or the buckets have
// changed.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective_call.h"

namespace dynamiccl {

// A set of shapes with a fixed size. The communicator's structure agent owns it; one thread at a time; it
// allocates nothing. It is a function of the calls alone, so equal on all ranks. A call whose shape is not
// new changes nothing here and need not be shown.
class SeenCalls {
 public:
  // Shapes that are remembered. When the set is full no shape counts as new; a job with more shapes pays by
  // changes that are not noticed.
  static constexpr size_t kShapes = 256;

  // Returns whether the call's shape is new. `number` is the call's number among the communicator's calls,
  // from 1, ascending.
  bool IsNew(const CollectiveCall& call, uint64_t number);
  // Calls up to `number` since the last new shape.
  uint64_t CallsSinceNew(uint64_t number) const { return number - last_new_; }
  void Forget() { *this = SeenCalls(); }

 private:
  std::array<uint64_t, kShapes> shapes_{};  // a hash table with linear probing; 0: empty
  size_t known_ = 0;                        // number of shapes in the table
  uint64_t last_new_ = 0;
};

}  // namespace dynamiccl
