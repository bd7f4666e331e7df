// SPDX-License-Identifier: Apache-2.0
// Steps of the project's own trainer (traces/generators/trainer_schedule.h) as a program of the simulator.
#pragma once

#include <vector>

#include "src/simulator/simulated_job.h"
#include "src/simulator/transfer_demand.h"
#include "tools/advise/advised_job.h"

namespace dynamiccl {

// The part of a pass's computing that is its forward pass: a backward pass computes twice as much.
inline constexpr double kForwardShare = 1.0 / 3;

// Computing time of a rank, in nanoseconds.
struct TrainerCompute {
  // Forward and backward pass of one micro-step.
  double pass_ns = 0;
  // The optimizer, for each number that the rank updates.
  double update_ns_per_element = 0;
};

// The program and, for tests, the operations that it issues.
struct TrainerProgram {
  // The ranks' program. Its collectives run on the communicator layouts of kAllAxes.
  RankProgram program;
  // The operations of all steps, in the order of issue.
  std::vector<WireOperation> operations;
};

// The steps of TrainerSchedule with `compute` as the computing time. Returns errors of the settings and of
// SystemDemands::Of.
Result<TrainerProgram> ProgramOfTrainer(const AdvisedJob& job, const TrainerCompute& compute, int steps,
                                        int ranks_per_node, SystemDemands& demands);

}  // namespace dynamiccl
