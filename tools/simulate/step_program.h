// SPDX-License-Identifier: Apache-2.0
// One training step of a generator (traces/generators) as a program of the simulator: computing is put
// between the calls where the framework does it.
#pragma once

#include <vector>

#include "src/simulator/simulated_job.h"
#include "src/simulator/transfer_demand.h"
#include "traces/generators/operation_list.h"

namespace dynamiccl {

// Nanoseconds of each rank.
struct StepCompute {
  double forward_ns = 0;    // of one pass over one micro-batch
  double backward_ns = 0;   // of one, with recomputation if there is any
  double optimizer_ns = 0;  // after the gradients are there
};

struct StepLayout {
  WorldShape world;
  int ranks_per_node = 1;
  CollectiveConfig config = kLeaveNcclAlone;  // of every call that has it
};

// A program that all ranks run, on the layouts of kAllAxes. The rules, by the calls' labels:
// - an activation collective is waited for at once, and a pass computes evenly between them;
// - without them, gradients follow their part of the backward, and gathered parameters come before theirs: a
//   gather is issued where the list has it (in the forward: when the unit before begins), and waited for
//   before its part is computed;
// - gradients are waited for before the optimizer; scalars and other calls at once; gathers after the step at
//   its end, or in the forward when the next one is issued;
// - calls of one ncclGroup pay one latency.
// Errors: of SystemDemands::Of.
Result<RankProgram> ProgramOf(const std::vector<WireOperation>& operations, const StepLayout& layout,
                              const StepCompute& compute, SystemDemands& demands);

// The layouts of kAllAxes.
std::vector<CommunicatorLayout> LayoutsOf(const WorldShape& world);

}  // namespace dynamiccl
