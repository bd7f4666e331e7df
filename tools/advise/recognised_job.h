// SPDX-License-Identifier: Apache-2.0
// Recognises which job a recorded step belongs to, as far as its calls tell.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"

namespace dynamiccl {

// A recognised job and how certain it is.
struct RecognisedJob {
  AdvisedJob job;
  // Description of the job for the user.
  std::string what;
  // Assumptions that the recognition made; the user is shown all of them.
  std::vector<std::string> notes;
};

// Recognises the job of a step. With labels it is the project's own trainer, whose units and buckets follow
// from the calls. Without labels it is data parallelism with AllReduces ("ddp"), whose calls can be merged
// but not divided, or gathers and ReduceScatters of units ("fsdp2"). The model gets one parameter for each
// unit or gradient call.
//
// Where the calls alone may be gradients or activations, recognised roles decide if the step has some. The
// error kUnsupported means that the step fits none of these jobs, or may be tensor parallelism: calls of one
// kind on two communicators, or eight and more of one size.
Result<RecognisedJob> RecogniseJob(const RecordedStep& step);

// Compares the job's calls in order with the recorded ones and returns the share that agrees, for the best
// starting point within the job's step; 1: all. Operators, roots and phases are not compared.
Result<double> ShareOfCalls(const AdvisedJob& job, const RecordedStep& step);

}  // namespace dynamiccl
