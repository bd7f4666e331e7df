// SPDX-License-Identifier: Apache-2.0
// Watches a run of a job from two sides: the hook in its Python processes reports what the framework does,
// and the recorder records the calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/advise/advised_job.h"
#include "tools/advise/recorded_step.h"
#include "tools/launch/launch_plan.h"
#include "tools/tune/hook_report.h"
#include "tools/tune/stalled_run.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {

// With fewer steps the time of a step is not known. Two of the steps only warm up.
inline constexpr size_t kFewestSteps = 6;

// If configs take turns within one run of the job, each is in effect for this many steps before the next one
// follows. The time of the first of these steps is not used.
inline constexpr uint32_t kStepsOfTurn = 2;

struct WatchedRun {
  std::vector<HookReport> reports;
  // The step that the lowest rank repeats; nothing where none repeats or no call was recorded.
  std::optional<RecordedStep> step;
  // One sentence that says why there is no step; empty where there is one.
  std::string why_no_step;
  // Number of calls of the lowest rank whose config a rule decided.
  size_t decided_by_rules = 0;
  // Number of whole turns that settings would have in a job with these calls (tools/ab/job_in_turns.h).
  size_t turns = 0;
  // The times of all ranks' calls.
  RunCalls when;
  // The job, if the project's own trainer ran. TuneSession knows it from the command.
  std::optional<AdvisedJob> trainer;
  // True if the lowest rank ran over hostccl, so its tensors are in host memory.
  bool on_host = false;
};

// Makes a launch report and record into `folder`, which only this run uses. If the user asked for a trace
// elsewhere, the trace stays there, and ReadWatched does not see the calls.
void Watch(const std::string& folder, RuntimeOptions& runtime);
// Reads what the processes of an ended launch wrote into `folder`. Processes may have been killed. `ended_ns`
// is RunCalls::ended_ns.
WatchedRun ReadWatched(const std::string& folder, int64_t ended_ns = 0);

}  // namespace dynamiccl
