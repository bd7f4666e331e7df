// SPDX-License-Identifier: Apache-2.0
// Sequences as tensors: tokens as inputs, classes as targets. A class of -1 means that there is no target.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "agents/structure/call_sequence.h"

namespace dynamiccl::agents {

// Tokens and targets of some sequences; all tensors are contiguous.
struct StructureBatch {
  // fp32 [sequence, call, kTokenFeatures], in which 1.0 stands for the integer kTokenOne.
  at::Tensor tokens;
  // int64 [sequence, call, kTunableCollectives]: role class of the next group's first call of that
  // collective.
  at::Tensor roles;
  // int64 [sequence, call]: phase class of the next group.
  at::Tensor phases;
  // int64 [sequence, call]: stage class of the communicator.
  at::Tensor stages;
  // int64 [sequence, call]: the collective of the next call, in the same group or the next.
  at::Tensor next_collectives;
  // int64 [sequence, call]: the size class of the next call.
  at::Tensor next_sizes;
};

// Takes up to `length` calls of each sequence, starting at the sequence's entry in `begins`. Short sequences
// are padded with empty tokens without targets. The targets for roles and phases are those of the next
// group's calls. They are set at the last call of the present group, which is when a job predicts them. A
// tiny AllReduce has no target for its role, because its size reveals the role.
StructureBatch MakeBatch(const std::vector<CallSequence>& sequences, const std::vector<size_t>& begins,
                         int length);

}  // namespace dynamiccl::agents
