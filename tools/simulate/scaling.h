// SPDX-License-Identifier: Apache-2.0
// Computes how much of a step's communication is exposed (not hidden by computing) as the number of
// data-parallel ranks grows. It compares algorithms, and numbers of ranks over which the model is sharded.
#pragma once

#include <string>
#include <vector>

#include "tools/simulate/framework_step.h"

namespace dynamiccl {

// One simulated step.
struct ScalingPoint {
  int ranks = 0;
  // Algorithm and sharding as text: "Ring", "PAT" or "Ring, shards of 8".
  std::string arrangement;
  int64_t step_ns = 0;
  int64_t exposed_ns = 0;
};

// Simulates a step with 8, 16 ... 4096 data-parallel ranks. The model is sharded over all ranks, over one
// node, or over eight nodes; in the last two cases an AllReduce sums over the copies of the model. If the
// system has no times for a collective with the compared algorithm, the collective uses the fastest
// algorithm.
Result<std::vector<ScalingPoint>> ScaleOut(FrameworkStep step, const System& system);
std::string FormatScaling(const std::vector<ScalingPoint>& points);

}  // namespace dynamiccl
