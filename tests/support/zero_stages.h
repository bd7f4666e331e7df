// SPDX-License-Identifier: Apache-2.0
// Lists the collectives of a GPT that is trained with ZeRO stage 0 to 3, with true labels, for any width,
// depth, world and bucket. It is written independently of the generator dynamiccl-zero, so that tests can
// compare both.
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
  // Number of micro-steps in a step (--micro-steps). Stages 0 and 1 reduce only in the last one.
  int micro_steps = 1;
  // In stage 3, the gather of the next unit comes before this unit is used.
  bool prefetch = true;
  // In the backward pass of stage 3, the autograd engine decides which of the two comes first.
  bool gather_before_reduce = true;
  // With mixed precision, an AllReduce of one element by maximum comes before the norm.
  bool overflow_flag = false;
  // Before the first step, each unit is broadcast once, so that all ranks begin with equal weights.
  bool broadcast_first = false;
};

// Returns the calls of one rank on the data-parallel communicator, in program order. With one micro-step per
// step, stages 1 and 2 make the same calls and differ only in timing.
std::vector<IssuedCall> GenerateZeroCalls(const ZeroWorkload& workload);

}  // namespace dynamiccl
