// SPDX-License-Identifier: Apache-2.0
// The operations that a rank of a generated job issues, in program order.
#pragma once

#include <cstdint>
#include <vector>

#include "src/collective/collective_call.h"
#include "traces/generators/world_shape.h"

namespace dynamiccl {

// One collective. It is equal on all ranks: none of its values depends on the rank.
struct WireOperation {
  Collective collective = Collective::kAllReduce;
  DataType data_type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Axis axis = Axis::kData;
  // Elements over all ranks: those that AllGather receives, or those that ReduceScatter sends.
  int64_t elements = 0;
  int root = -1;  // rank in the communicator; -1: the collective has no root
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
  uint16_t index_in_group = 0;  // place between ncclGroupStart and ncclGroupEnd
  uint16_t group_size = 1;

  // NCCL's total bytes of the operation.
  uint64_t Bytes() const { return static_cast<uint64_t>(elements) * ElementBytes(data_type); }

  friend bool operator==(const WireOperation&, const WireOperation&) = default;
};

// Collects the operations of one step. Operations without elements are left out, as the frameworks do.
class OperationList {
 public:
  // Sets the phase of the operations that follow.
  void SetPhase(Phase phase) { phase_ = phase; }

  void AllGather(int64_t elements, DataType type, Role role, Axis axis = Axis::kData);
  void ReduceScatter(int64_t elements, DataType type, ReduceOp op, Role role, Axis axis = Axis::kData);
  // Adds an AllReduce. An AllReduce of at most kTinyBytes gets the role scalar whatever `role` is, because
  // nothing in the call distinguishes it from a scalar.
  void AllReduce(int64_t elements, DataType type, ReduceOp op, Role role, Axis axis = Axis::kData);
  void Broadcast(int64_t elements, DataType type, int root, Role role, Axis axis = Axis::kData);
  void Reduce(int64_t elements, DataType type, ReduceOp op, int root, Role role, Axis axis = Axis::kData);

  // Operations added between BeginGroup and EndGroup are issued in one ncclGroup. All of them must be on one
  // communicator.
  void BeginGroup();
  void EndGroup();

  size_t size() const { return operations_.size(); }
  std::vector<WireOperation> Take() { return std::move(operations_); }

 private:
  void Add(WireOperation operation);

  std::vector<WireOperation> operations_;
  Phase phase_ = Phase::kOther;
  size_t group_begin_ = 0;
};

// The least multiple of `multiple` that is not below `value`.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace dynamiccl
