// SPDX-License-Identifier: Apache-2.0
// Converts steps of the project's own trainer (traces/generators/trainer_schedule.h) into a program that the
// simulator runs.
#pragma once

#include <vector>

#include "src/simulator/simulated_job.h"
#include "src/simulator/transfer_demand.h"
#include "tools/advise/advised_job.h"

namespace dynamiccl {

// The share of a forward and backward pass's computing time that the forward pass takes: a backward pass
// computes twice as much.
inline constexpr double kForwardShare = 1.0 / 3;

// Computing time of a rank, in nanoseconds.
struct TrainerCompute {
  // Time of the forward and backward pass of one micro-step.
  double pass_ns = 0;
  // Time of the optimizer for each number that the rank updates.
  double update_ns_per_element = 0;
};

// A program for the simulator and, for tests, the operations that the program issues.
struct TrainerProgram {
  // The program that every rank runs. Its collectives run on one communicator for each axis in kAllAxes.
  RankProgram program;
  // The operations of all steps, in the order of issue.
  std::vector<WireOperation> operations;
};

// Converts the steps that TrainerSchedule lists into a program, with `compute` as the computing time. Returns
// the errors of the job's settings and those of SystemDemands::Of.
Result<TrainerProgram> ProgramOfTrainer(const AdvisedJob& job, const TrainerCompute& compute, int steps,
                                        int ranks_per_node, SystemDemands& demands);

}  // namespace dynamiccl
