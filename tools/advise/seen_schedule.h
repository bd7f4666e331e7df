// SPDX-License-Identifier: Apache-2.0
// The schedule of a job whose tensors are in host memory, as its recorded step shows it. There the times of
// issue are those at which the program itself computes and waits.
#pragma once

#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"
#include "tools/simulate/step_program.h"

namespace dynamiccl {

// Without a schedule that was seen, a prediction has the rules of ProgramOf (tools/simulate/step_program.h).
struct SeenSchedule {
  // StepLayout::host_waits and StepCompute::arrivals.
  bool host_waits = false;
  std::vector<GradientArrival> arrivals;
};

// Returns the schedule of a job on host memory. FSDP2 waits there for each call: its wait() holds up the
// program and not a stream. Gradients of DDP are known to be there when their AllReduce is issued; those of
// the first one are assumed to come at the pace of the others. A step with one AllReduce, and one that
// reduces gradients several times, tell no pace.
SeenSchedule HostSchedule(const AdvisedJob& job, const RecordedStep& step);

}  // namespace dynamiccl
