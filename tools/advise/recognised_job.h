// SPDX-License-Identifier: Apache-2.0
// Recognises from the calls of one recorded step which framework, model and settings a job has.
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

// Recognises the job to which a step belongs. A step with labels belongs to the project's own trainer; its
// units and buckets follow from the calls. A step without labels is one of two kinds of data parallelism.
// With AllReduces it is "ddp", whose calls can be merged but not divided. With gathers and ReduceScatters it
// is "fsdp2". The model gets one parameter for each unit or gradient call.
//
// If the calls alone could be gradients or activations, the recognised roles decide, provided that the step
// has some. The error kUnsupported means that the step fits none of these jobs, or may be tensor parallelism:
// calls of one kind on two communicators, or eight or more of one size.
Result<RecognisedJob> RecogniseJob(const RecordedStep& step);

// Compares the calls that the job would issue with the recorded calls, in order. Returns the share of
// recorded calls that agree, from 0 to 1, for the best starting point within the job's step. Recorded calls
// that the job never issues, such as broadcasts of buffers, do not agree, and are passed over. Operators,
// roots and phases are not compared.
Result<double> ShareOfCalls(const AdvisedJob& job, const RecordedStep& step);

}  // namespace dynamiccl
