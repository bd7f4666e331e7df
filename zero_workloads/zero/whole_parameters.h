// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism divides most parameters; norms, position embeddings and biases of row-parallel layers
// every rank of the tensor group holds whole. Where those lie in an arena, and what their gradients need: a
// sum over the group where each rank has seen its slice of the sequence only, and to count once in the norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <vector>

#include "zero_workloads/parallel/tensor_split.h"
#include "zero_workloads/zero/flat_parameters.h"
#include "zero_workloads/zero/partition.h"

namespace dynamiccl::zero {

// Elements [begin, begin + length) of an arena.
struct ArenaRun {
  int64_t begin = 0;
  int64_t length = 0;
};

// The runs of data rank `rank`'s arena that belong to sliced parameters, or to whole ones.
std::vector<ArenaRun> ArenaRuns(const std::deque<FlatParameters>& units, const Partition& partition,
                                int64_t rank, bool sliced);

// Sums `gradients`, one arena after another, over the tensor group where a whole parameter has them: one
// call. `runs` by arena.
void SumWholeParameters(const at::Tensor& gradients, const std::vector<std::vector<ArenaRun>>& runs,
                        ProcessGroup* group);

// What this tensor rank adds to the squared norm: of sliced parameters, and on the first rank of the group of
// all. `sliced`: the arena's runs of sliced parameters.
at::Tensor SquaredNormShare(const at::Tensor& arena, const std::vector<ArenaRun>& sliced,
                            const TensorSplit& split);

}  // namespace dynamiccl::zero
