// SPDX-License-Identifier: Apache-2.0
// Measures how fast this machine's ranks compute and move data, within some milliseconds.
// --activation-checkpoints auto decides on these figures.
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero_r/checkpoint_choice.h"

namespace dynamiccl::zero {

// The groups over which bandwidth is measured.
struct MeasuredGroups {
  ProcessGroup* world = nullptr;
  ProcessGroup* data = nullptr;
  // The ranks over which ZeRO partitions.
  ProcessGroup* shard = nullptr;
  // The tensor-parallel group. Null if there is no tensor parallelism.
  ProcessGroup* tensor = nullptr;
};

// Every rank of the world calls the function, and all ranks get the figures of the slowest rank.
// `memory_bytes` is this rank's memory, and the result has the smallest memory of all ranks. `options` are
// those of activations.
Hardware MeasureHardware(const MeasuredGroups& groups, double memory_bytes, const at::TensorOptions& options);

}  // namespace dynamiccl::zero
