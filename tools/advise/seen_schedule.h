// SPDX-License-Identifier: Apache-2.0
// Reads from the recorded step of a job when the job computes and waits, if its tensors are in host memory.
// In such a job the program itself computes and waits, so the times of issue show when.
#pragma once

#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"
#include "tools/simulate/step_program.h"

namespace dynamiccl {

// Share of one core that hostccl's threads take while a call is in flight. For three training presets and
// three collectives of 8 MiB it was 0.15 to 0.28 (docs/results/tune.md).
inline constexpr double kHostShare = 0.2;

// Holds what a recorded step shows about when the job computes and waits. A member that keeps its default
// leaves that part to the rules of ProgramOf (tools/simulate/step_program.h).
struct SeenSchedule {
  // StepLayout::host_waits and StepCompute::arrivals.
  bool host_waits = false;
  std::vector<GradientArrival> arrivals;
  // StepCompute::unpack_ns.
  double unpack_ns = 0;
  // SimulatedJob::host_share.
  double host_share = 0;
};

// Returns when a job whose tensors are in host memory computes and waits.
//
// An FSDP2 job waits on the host for each call, because wait() blocks the program and not only a stream.
// After a ReduceScatter the host only unpacks the previous gather before it issues the next gather.
//
// In a DDP job the gradients of a bucket exist when the program issues the bucket's AllReduce. The gradients
// of the first bucket are assumed to be computed at the same pace as the others. `arrivals` is empty, because
// the pace is unknown, if a step has only one AllReduce or reduces its gradients several times.
SeenSchedule HostSchedule(const AdvisedJob& job, const RecordedStep& step);

}  // namespace dynamiccl
