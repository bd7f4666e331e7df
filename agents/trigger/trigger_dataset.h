// SPDX-License-Identifier: Apache-2.0
// Sequences as tensors: tokens in, classes out, -1 where there is nothing to learn.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "agents/trigger/call_sequence.h"

namespace dynamiccl::agents {

struct TriggerBatch {
  at::Tensor tokens;  // float [sequence, call, kTokenFeatures], 1.0 is kTokenOne
  at::Tensor roles;
  at::Tensor phases;            // int64 [sequence, call]: phase class of the next call
  at::Tensor stages;            // int64 [sequence, call]
  at::Tensor next_collectives;  // int64 [sequence, call]: of the next call, in the same group or the next
  at::Tensor next_sizes;        // int64 [sequence, call]
};

// The first `length` calls of each sequence from its `begins`; the rest of short ones is empty and carries no
// targets. What "next" means is what a job sees: the calls of the next group, read after the last call of
// this one. A tiny AllReduce has no target for its role, which its size tells.
TriggerBatch MakeBatch(const std::vector<CallSequence>& sequences, const std::vector<size_t>& begins,
                       int length);

}  // namespace dynamiccl::agents
