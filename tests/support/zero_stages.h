// SPDX-License-Identifier: Apache-2.0
// Lists the collectives of a GPT trained with ZeRO stage 0 to 3, with true labels, for any width, depth,
// world and bucket. It is written independently of the generator dynamiccl-zero, so that tests can compare
// the two.
#pragma once

#include <cstdint>
#include <vector>

#include "src/collective/collective_call.h"

namespace dynamiccl {

// A training job.
struct ZeroWorkload {
  int stage = 0;  // 0 to 3
  int layers = 4;
  int64_t hidden = 128;
  int64_t sequence = 128;
  int64_t vocabulary = 256;
  int world = 2;
  int64_t bucket_bytes = 4 << 20;  // bytes of a gradient bucket, over all ranks
  DataType data_type = DataType::kFloat32;
  int steps = 4;
  // Micro-steps in a step (--micro-steps). Stages 0 and 1 reduce in the last one only.
  int micro_steps = 1;
  // In stage 3 the gather of the next unit comes before the use of this one.
  bool prefetch = true;
  // In the backward pass of stage 3: which of the two comes first depends on the autograd engine.
  bool gather_before_reduce = true;
  // An AllReduce by maximum of one element comes before the norm (mixed precision).
  bool overflow_flag = false;
  // One Broadcast for each unit comes before the first step, so that all ranks begin with equal weights.
  bool broadcast_first = false;
};

// Returns the calls of one rank on the data-parallel communicator, in program order. Stage 1 and stage 2
// differ only where micro_steps is more than one; else their streams of calls are the same and only their
// timing differs.
std::vector<IssuedCall> GenerateZeroCalls(const ZeroWorkload& workload);

}  // namespace dynamiccl
