// SPDX-License-Identifier: Apache-2.0
// All functions add through Add, which drops empty operations and sets the phase.
#include "traces/generators/operation_list.h"

namespace dynamiccl {

void OperationList::Add(WireOperation operation) {
  if (operation.elements == 0) return;
  operation.phase = phase_;
  operations_.push_back(operation);
}

void OperationList::AllGather(int64_t elements, DataType type, Role role, Axis axis) {
  Add({.collective = Collective::kAllGather,
       .data_type = type,
       .axis = axis,
       .elements = elements,
       .role = role});
}

void OperationList::ReduceScatter(int64_t elements, DataType type, ReduceOp op, Role role, Axis axis) {
  Add({.collective = Collective::kReduceScatter,
       .data_type = type,
       .op = op,
       .axis = axis,
       .elements = elements,
       .role = role});
}

void OperationList::AllReduce(int64_t elements, DataType type, ReduceOp op, Role role, Axis axis) {
  const bool is_tiny = static_cast<uint64_t>(elements) * ElementBytes(type) <= kTinyBytes;
  Add({.collective = Collective::kAllReduce,
       .data_type = type,
       .op = op,
       .axis = axis,
       .elements = elements,
       .role = is_tiny ? Role::kScalar : role});
}

void OperationList::Broadcast(int64_t elements, DataType type, int root, Role role, Axis axis) {
  Add({.collective = Collective::kBroadcast,
       .data_type = type,
       .axis = axis,
       .elements = elements,
       .root = root,
       .role = role});
}

void OperationList::Reduce(int64_t elements, DataType type, ReduceOp op, int root, Role role, Axis axis) {
  Add({.collective = Collective::kReduce,
       .data_type = type,
       .op = op,
       .axis = axis,
       .elements = elements,
       .root = root,
       .role = role});
}

void OperationList::BeginGroup() {
  group_begin_ = operations_.size();
}

// Numbers the operations that were added since BeginGroup.
void OperationList::EndGroup() {
  const size_t size = operations_.size() - group_begin_;
  for (size_t i = 0; i < size; ++i) {
    operations_[group_begin_ + i].index_in_group = static_cast<uint16_t>(i);
    operations_[group_begin_ + i].group_size = static_cast<uint16_t>(size);
  }
}

}  // namespace dynamiccl
