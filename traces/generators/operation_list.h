// SPDX-License-Identifier: Apache-2.0
// What a generator says that a rank puts on the wire, in program order.
#pragma once

#include <cstdint>
#include <vector>

#include "src/collective/collective_call.h"
#include "traces/generators/world_shape.h"

namespace dynamiccl {

// One collective. Equal on all ranks: none of its values depends on the rank.
struct WireOperation {
  Collective collective = Collective::kAllReduce;
  DataType data_type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Axis axis = Axis::kData;
  int64_t elements = 0;  // of the whole: what AllGather receives, what ReduceScatter sends
  int root = -1;         // in the communicator; -1 where the collective has none
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
  uint16_t index_in_group = 0;  // of its ncclGroupStart ... ncclGroupEnd
  uint16_t group_size = 1;

  uint64_t Bytes() const { return static_cast<uint64_t>(elements) * ElementBytes(data_type); }

  friend bool operator==(const WireOperation&, const WireOperation&) = default;
};

// Calls without elements are left out, as the frameworks leave them out.
class OperationList {
 public:
  // Of the operations that follow.
  void SetPhase(Phase phase) { phase_ = phase; }

  void AllGather(int64_t elements, DataType type, Role role, Axis axis = Axis::kData);
  void ReduceScatter(int64_t elements, DataType type, ReduceOp op, Role role, Axis axis = Axis::kData);
  // Of at most kTinyBytes it is a scalar, whatever role is given: nothing on the wire tells it from one.
  void AllReduce(int64_t elements, DataType type, ReduceOp op, Role role, Axis axis = Axis::kData);
  void Broadcast(int64_t elements, DataType type, int root, Role role, Axis axis = Axis::kData);
  void Reduce(int64_t elements, DataType type, ReduceOp op, int root, Role role, Axis axis = Axis::kData);

  // What is added between the two goes out in one ncclGroup; all of it must be on one communicator.
  void BeginGroup();
  void EndGroup();

  std::vector<WireOperation> Take() { return std::move(operations_); }

 private:
  void Add(WireOperation operation);

  std::vector<WireOperation> operations_;
  Phase phase_ = Phase::kOther;
  size_t group_begin_ = 0;
};

constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace dynamiccl
