// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism divides most parameters. Norms, position embeddings and biases of row-parallel layers
// are whole on every rank of the tensor group. The functions here find the places of whole parameters in an
// arena (all shards of one rank, partition.h) and handle their gradients. With a split sequence each rank has
// seen only its slice, so the gradients of whole parameters must be summed over the tensor group. In the norm
// of the gradients, whole parameters must count once.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <vector>

#include "zero_workloads/parallel/partition.h"
#include "zero_workloads/parallel/tensor_split.h"
#include "zero_workloads/zero/flat_parameters.h"

namespace dynamiccl::zero {

// A run of contiguous elements, [begin, begin + length), of an arena (all shards of one rank, partition.h).
struct ArenaRun {
  int64_t begin = 0;
  int64_t length = 0;
};

// The runs of data rank `rank`'s arena that belong to sliced parameters (if `sliced` is true) or to whole
// parameters (if it is false), in arena order within each unit.
std::vector<ArenaRun> ArenaRuns(const std::deque<FlatParameters>& units, const Partition& partition,
                                int64_t rank, bool sliced);

// Sums the parts of `gradients` that belong to whole parameters over the tensor group, in one AllReduce.
// `gradients` is fp32 and holds one or more arenas one after another; `runs` has the runs of whole parameters
// for each arena. All ranks of the group call it.
void SumWholeParameters(const at::Tensor& gradients, const std::vector<std::vector<ArenaRun>>& runs,
                        ProcessGroup* group);

// Returns the scalar that this tensor rank contributes to the squared norm of the gradients: the sum over
// sliced parameters, and on the first rank of the group the sum over all parameters. `sliced` has the arena's
// runs of sliced parameters.
at::Tensor SquaredNormShare(const at::Tensor& arena, const std::vector<ArenaRun>& sliced,
                            const TensorSplit& split);

}  // namespace dynamiccl::zero
