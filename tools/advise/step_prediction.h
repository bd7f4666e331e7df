// SPDX-License-Identifier: Apache-2.0
// Predicts how long a training step of a job takes on a system. Also works out from the recorded time of a
// step how long the ranks compute in it.
#pragma once

#include <cstdint>

#include "src/simulator/system.h"
#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"
#include "tools/advise/seen_schedule.h"
#include "tools/advise/trainer_program.h"

namespace dynamiccl {

// Predicted times of a step in the steady state.
struct PredictedStep {
  // Step time: half of the time that the third and fourth of four simulated steps take together.
  int64_t step_ns = 0;
  // The part of step_ns in which rank 0 waits for communication.
  int64_t exposed_ns = 0;
};

// The shortest and longest step time if every collective takes as long as at the ends of its interval.
struct StepInterval {
  int64_t low_ns = 0;
  int64_t high_ns = 0;
};

// Simulates jobs on one system. It holds no state except its constructor's arguments.
class StepPrediction {
 public:
  StepPrediction(const System& system, int ranks_per_node, SeenSchedule seen = {})
      : system_(system), ranks_per_node_(ranks_per_node), seen_(std::move(seen)) {}

  // Simulates the job: the project's own trainer by ProgramOfTrainer, other frameworks by ProgramOf
  // (tools/simulate/step_program.h). It is an error if the settings are wrong, or if the system has no path
  // for a call.
  Result<PredictedStep> Of(const AdvisedJob& job, const TrainerCompute& compute) const;

  // Returns the computing time of each rank. The time of a forward and backward pass is found by bisection,
  // so that the simulated step takes `step_ns`; it is 0 if the step's communication alone takes longer. For
  // stages 1 to 3 of the trainer, the optimizer's time is the recorded time between the scalar calls and the
  // call after them.
  Result<TrainerCompute> ComputeOf(const AdvisedJob& job, const RecordedStep& recorded,
                                   int64_t step_ns) const;

 private:
  // Returns the job, for a number of consecutive steps, in the form that the simulator runs.
  Result<SimulatedJob> JobOf(const AdvisedJob& job, const TrainerCompute& compute, int steps) const;
  // Nanoseconds of the optimizer for each number that a rank updates.
  Result<double> UpdateNsPerElement(const AdvisedJob& job, const RecordedStep& recorded) const;

  // Returns a program of `steps` equal steps, for a framework other than the trainer.
  Result<RankProgram> ProgramOfFramework(const AdvisedJob& job, double pass_ns, int steps,
                                         SystemDemands& demands) const;

  const System& system_;
  int ranks_per_node_;
  SeenSchedule seen_;
};

}  // namespace dynamiccl
