// SPDX-License-Identifier: Apache-2.0
// What a user can change of a recorded job today, without us, with what a step would take then.
#pragma once

#include <string>
#include <vector>

#include "tools/advise/possible_changes.h"
#include "tools/advise/recognised_job.h"
#include "tools/advise/step_prediction.h"

namespace dynamiccl {

struct AdvisedChange {
  PossibleChange change;
  PredictedStep predicted;
};

struct Advice {
  RecognisedJob recognised;
  int ranks_per_node = 1;
  double share_of_calls = 0;  // ShareOfCalls
  int64_t step_ns = 0;        // that computing was fitted to
  TrainerCompute compute;
  PredictedStep simulated;             // of the job as it is
  std::vector<AdvisedChange> changes;  // shortest step first
};

// The paths of a system as the recorded times of collectives have them. kInvalidArgument: there are none.
Result<System> SystemOfTimes(const RecordedStep& step);

// `step_ns`: what a step takes, where the trace does not say. Errors: of RecogniseJob and of the prediction.
Result<Advice> Advise(const RecordedStep& step, RecognisedJob job, const System& system, int64_t step_ns);

// For people: the job, the recorded and the simulated step, a table.
std::string FormatAdvice(const Advice& advice, const RecordedStep& step, const System& system);

}  // namespace dynamiccl
