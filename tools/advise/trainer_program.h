// SPDX-License-Identifier: Apache-2.0
// Steps of the project's own trainer as a program of the simulator: its calls are the generator's
// (traces/generators/dynamiccl_zero.cc), between them stands what it computes and waits for.
#pragma once

#include <vector>

#include "src/simulator/simulated_job.h"
#include "src/simulator/transfer_demand.h"
#include "tools/advise/advised_job.h"

namespace dynamiccl {

// Nanoseconds of a rank.
struct TrainerCompute {
  double pass_ns = 0;                // forward and backward of one micro-step
  double update_ns_per_element = 0;  // of the optimizer, for each number that the rank updates
};

struct TrainerProgram {
  RankProgram program;                    // on the layouts of kAllAxes
  std::vector<WireOperation> operations;  // of all steps, in the order of issue
};

// What the trainer does (docs/zero_trainer.md, zero_workloads/zero):
// - a forward pass is a third of a pass's computing, each block takes its share by parameters, and the root's
//   is the head's: the last of the forward, the first of the backward;
// - stage 3 gathers a unit before it is used, one unit ahead with prefetch;
// - a unit's gradients go to the buckets once they are all there, in stage 1 after the backward pass. There
//   are two buckets, so that a third one waits for the first; without overlap each is waited for at once;
// - all buckets are waited for at the end of the backward pass, then the scalars, then the optimizer
// computes;
// - stages 1 and 2 wait for an updated unit when the next step's forward pass needs it.
// Errors: of the settings, and of SystemDemands::Of.
Result<TrainerProgram> ProgramOfTrainer(const AdvisedJob& job, const TrainerCompute& compute, int steps,
                                        int ranks_per_node, SystemDemands& demands);

}  // namespace dynamiccl
