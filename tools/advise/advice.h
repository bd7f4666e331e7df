// SPDX-License-Identifier: Apache-2.0
// Advice for a recorded job: what its user can change today without DynamICCL, and how long a step would then
// take. docs/advise.md describes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/advise/possible_changes.h"
#include "tools/advise/recognised_job.h"
#include "tools/advise/step_prediction.h"

namespace dynamiccl {

// One change of the job's settings, and the step time that is predicted with it.
struct AdvisedChange {
  PossibleChange change;
  PredictedStep predicted;
  // Empty if Advice::no_interval gives a reason.
  std::optional<StepInterval> interval;
};

// The result of Advise: the recognised job, its step as recorded and as simulated, and the changes.
struct Advice {
  RecognisedJob recognised;
  int ranks_per_node = 1;
  // The share of the recorded calls that the recognised job issues too, from 0 to 1 (see ShareOfCalls).
  double share_of_calls = 0;
  // Recorded step time in nanoseconds. The simulated computing time is fitted so that the simulated step
  // takes as long.
  int64_t step_ns = 0;
  TrainerCompute compute;
  // The simulated step of the unchanged job, with which the changes are compared.
  PredictedStep simulated;
  // The reason why the predictions have no interval; empty if they have one.
  std::string no_interval;
  // The changes, sorted by predicted step time, shortest first.
  std::vector<AdvisedChange> changes;
};

// Returns a system (the links of a machine as the simulator needs them) fitted to the recorded times of
// collectives. It is an error (kInvalidArgument) when the trace has no such times.
Result<System> SystemOfTimes(const RecordedStep& step);

// Returns the interval from 1/1.27 to 1.27 times the predicted step time. Of 18 changes that were measured,
// the step times of 17 lay in this interval (docs/results/advise.md; a test compares them). Other changes
// need not be like those.
StepInterval MeasuredInterval(int64_t predicted_ns);

// Says how many calls between two ranks are left out of every prediction; empty if the step has none.
std::string CallsNotSimulated(const RecordedStep& step);

// Predicts the step time of every possible change. `step_ns` overrides the recorded step time; 0 takes the
// time from the trace. It is an error when neither gives a step time, or when the prediction fails.
// `on_host`: the job's tensors are in host memory, so the program itself waits for each call (see
// HostSchedule).
Result<Advice> Advise(const RecordedStep& step, RecognisedJob job, const System& system, int64_t step_ns,
                      bool on_host = false);

// The advice for people: the job, the recorded and the simulated step, and a table of changes.
std::string FormatAdvice(const Advice& advice, const RecordedStep& step, const System& system);

}  // namespace dynamiccl
