// SPDX-License-Identifier: Apache-2.0
// Which job a recorded step is of, as far as its calls tell.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"

namespace dynamiccl {

struct RecognisedJob {
  AdvisedJob job;
  std::string what;                // in words
  std::vector<std::string> notes;  // what was taken for granted
};

// With labels: the project's own trainer, its units and buckets read off the calls. Without: data parallelism
// with AllReduces ("ddp"), whose calls can be merged and not divided; or gathers and ReduceScatters of units
// ("fsdp2"). The model has one parameter for each unit, or for each gradient call. kUnsupported: neither.
Result<RecognisedJob> RecogniseJob(const RecordedStep& step);

// How many of the recorded calls, in their order from the first one on, are what the job issues in a step
// that begins at any of its calls; 1: all. Operators, roots and phases do not count.
Result<double> ShareOfCalls(const AdvisedJob& job, const RecordedStep& step);

}  // namespace dynamiccl
