// SPDX-License-Identifier: Apache-2.0
// Sequences as tensors: tokens in, classes out. A class of -1 means that there is nothing to learn.
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

// The first `length` calls of each sequence from its entry in `begins` on. Short sequences are padded with
// empty tokens and no targets. Roles and phases are those of the next group's calls, learned at the last call
// of the present group, as a job sees them. A tiny AllReduce has no target for its role, since its size
// reveals it.
StructureBatch MakeBatch(const std::vector<CallSequence>& sequences, const std::vector<size_t>& begins,
                         int length);

}  // namespace dynamiccl::agents
