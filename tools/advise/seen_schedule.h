// SPDX-License-Identifier: Apache-2.0
// The schedule of a job whose tensors are in host memory, as its recorded step shows it. There the times of
// issue are those at which the program itself computes and waits.
#pragma once

#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"
#include "tools/simulate/step_program.h"

namespace dynamiccl {

// Share of a core that hostccl's threads take while a call is in flight. Over three presets and three
// collectives of 8 MiB it was 0.15 to 0.28 (docs/results/tune.md).
inline constexpr double kHostShare = 0.2;

// Without a schedule that was seen, a prediction has the rules of ProgramOf (tools/simulate/step_program.h).
struct SeenSchedule {
  // StepLayout::host_waits and StepCompute::arrivals.
  bool host_waits = false;
  std::vector<GradientArrival> arrivals;
  // StepCompute::unpack_ns.
  double unpack_ns = 0;
  // SimulatedJob::host_share.
  double host_share = 0;
};

// Returns the schedule of a job on host memory. FSDP2 waits there for each call: its wait() holds up the
// program and not a stream. Between a ReduceScatter and the gather that follows it does nothing but unpack
// the gather before. Gradients of DDP are known to be there when their AllReduce is issued; those of the
// first one are assumed to come at the pace of the others. A step with one AllReduce, and one that reduces
// gradients several times, tell no pace.
SeenSchedule HostSchedule(const AdvisedJob& job, const RecordedStep& step);

}  // namespace dynamiccl
