// SPDX-License-Identifier: Apache-2.0
// What this machine's ranks can compute and move, measured in some milliseconds: what
// --activation-checkpoints auto weighs.
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/zero_r/checkpoint_choice.h"

namespace dynamiccl::zero {

struct MeasuredGroups {
  ProcessGroup* world = nullptr;
  ProcessGroup* data = nullptr;
  ProcessGroup* shard = nullptr;   // over which ZeRO divides
  ProcessGroup* tensor = nullptr;  // null: no tensor parallelism
};

// The slowest rank's figures, on all ranks; every rank calls it. `memory_bytes` is this rank's; the least of
// them comes back.
Hardware MeasureHardware(const MeasuredGroups& groups, double memory_bytes, const at::TensorOptions& options);

}  // namespace dynamiccl::zero
