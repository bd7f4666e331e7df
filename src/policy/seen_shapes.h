// SPDX-License-Identifier: Apache-2.0
// The shapes of the calls that one communicator has seen: collective, bytes, type and operator. A job repeats
// its shapes. So a new shape, after a while without one, means that the batch or the buckets have changed.
#pragma once

#include <array>
#include <cstdint>

#include "src/collective/collective_call.h"

namespace dynamiccl {

// A set of shapes with a fixed size, owned by the communicator's structure agent; one thread at a time. It
// allocates nothing. It is a function of the calls alone, so it is equal on all ranks. A call with a known
// shape changes nothing, so such calls need not be passed in.
class SeenShapes {
 public:
  // Number of shapes that are remembered. When the set is full no shape counts as new, so in a job with more
  // shapes some changes go unnoticed.
  static constexpr size_t kShapes = 256;

  // Returns whether the call's shape is new. `number` is the call's number among the communicator's calls,
  // from 1, ascending.
  bool IsNew(const CollectiveCall& call, uint64_t number);
  // Returns the number of calls from the last new shape to call `number`.
  uint64_t CallsSinceNew(uint64_t number) const { return number - last_new_; }
  void Forget() { *this = SeenShapes(); }

 private:
  std::array<uint64_t, kShapes> shapes_{};  // a hash table with linear probing; 0: empty
  size_t known_ = 0;                        // number of shapes in the table
  uint64_t last_new_ = 0;
};

}  // namespace dynamiccl
