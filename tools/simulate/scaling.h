// SPDX-License-Identifier: Apache-2.0
// Computes how much communication of a step stays exposed as the data-parallel degree grows, by algorithm and
// by how far the model is sharded.
#pragma once

#include <string>
#include <vector>

#include "tools/simulate/framework_step.h"

namespace dynamiccl {

// One simulated step.
struct ScalingPoint {
  int ranks = 0;
  // "Ring", "PAT" or "Ring, shards of 8".
  std::string arrangement;
  int64_t step_ns = 0;
  int64_t exposed_ns = 0;
};

// Simulates data-parallel degrees 8, 16 ... 4096, with the model sharded over all ranks, over one node, and
// over eight nodes with an AllReduce between the copies. A collective that has no path with the arrangement's
// algorithm takes the cheapest path.
Result<std::vector<ScalingPoint>> ScaleOut(FrameworkStep step, const System& system);
std::string FormatScaling(const std::vector<ScalingPoint>& points);

}  // namespace dynamiccl
