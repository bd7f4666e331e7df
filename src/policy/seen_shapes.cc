// SPDX-License-Identifier: Apache-2.0
// The hash table of shapes. See seen_shapes.h.
#include "src/policy/seen_shapes.h"

namespace dynamiccl {
namespace {

// Returns a hash of a shape (finaliser of splitmix64), never 0. If two shapes have the same hash, the second
// one counts as seen.
uint64_t ShapeOf(const CollectiveCall& call) {
  uint64_t shape = call.bytes * 0x9e3779b97f4a7c15u;
  shape ^= (static_cast<uint64_t>(call.collective) << 16 | static_cast<uint64_t>(call.data_type) << 8 |
            static_cast<uint64_t>(call.op)) *
           0xd1342543de82ef95u;
  shape = (shape ^ shape >> 30) * 0xbf58476d1ce4e5b9u;
  shape = (shape ^ shape >> 27) * 0x94d049bb133111ebu;
  return (shape ^ shape >> 31) | 1;
}

}  // namespace

bool SeenShapes::IsNew(const CollectiveCall& call, uint64_t number) {
  // When the table is full, no shape counts as new.
  if (known_ == kShapes) return false;
  const uint64_t shape = ShapeOf(call);
  for (size_t i = 0; i < kShapes; ++i) {
    uint64_t& place = shapes_[((shape >> 1) + i) % kShapes];
    if (place == shape) return false;
    if (place != 0) continue;
    place = shape;
    ++known_;
    last_new_ = number;
    return true;
  }
  return false;
}

}  // namespace dynamiccl
