// SPDX-License-Identifier: Apache-2.0
// How long a step of a job takes on a system, and how long its ranks compute so that the recorded step takes
// as long as it did.
#pragma once

#include <cstdint>

#include "src/simulator/system.h"
#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"
#include "tools/advise/trainer_program.h"

namespace dynamiccl {

struct PredictedStep {
  int64_t step_ns = 0;     // of the steady state: the third and fourth of four steps, halved
  int64_t exposed_ns = 0;  // of it: rank 0 waits for communication
};

class StepPrediction {
 public:
  // `system` must outlive it.
  StepPrediction(const System& system, int ranks_per_node)
      : system_(system), ranks_per_node_(ranks_per_node) {}

  // The trainer's steps by ProgramOfTrainer, other frameworks' by ProgramOf (tools/simulate/step_program.h).
  // Errors: of the job's settings, and where the system knows no path for a call.
  Result<PredictedStep> Of(const AdvisedJob& job, const TrainerCompute& compute) const;

  // What the ranks compute. The optimizer's time is what stands between the scalars and the next call, where
  // one follows it (stages 1 to 3 of the trainer); the rest is found by bisection, so that Of(job) takes
  // `step_ns`. A step that is shorter than its communication gives a pass of 0.
  Result<TrainerCompute> ComputeOf(const AdvisedJob& job, const RecordedStep& recorded,
                                   int64_t step_ns) const;

 private:
  Result<SimulatedJob> JobOf(const AdvisedJob& job, const TrainerCompute& compute, int steps) const;
  Result<double> UpdateNsPerElement(const AdvisedJob& job, const RecordedStep& recorded) const;

  const System& system_;
  int ranks_per_node_;
};

}  // namespace dynamiccl
