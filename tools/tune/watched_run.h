// SPDX-License-Identifier: Apache-2.0
// A run of a job that is watched from two sides: the hook in its Python processes reports what the framework
// does, and the recorder keeps its calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/advise/recorded_step.h"
#include "tools/launch/launch_plan.h"
#include "tools/tune/hook_report.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {

// Fewer steps than this say nothing about the time of a step: two of them warm up.
inline constexpr size_t kFewestSteps = 6;

// If configs take turns within one start, a turn has this many steps. The first of them does not count.
inline constexpr uint32_t kStepsOfTurn = 2;

struct WatchedRun {
  std::vector<HookReport> reports;
  // The step that the lowest rank repeats; nothing where none repeats or no call was recorded.
  std::optional<RecordedStep> step;
  // One sentence that says why there is no step; empty where there is one.
  std::string why_no_step;
  // Calls of that rank whose configuration a rule decided.
  size_t decided_by_rules = 0;
  // Whole turns of settings that a start with these calls has (tools/ab/job_in_turns.h).
  size_t turns = 0;
};

// Has a launch report and record into `folder`, which only this run uses. A trace that the user asked for is
// left as it is; the calls are then not seen here.
void Watch(const std::string& folder, RuntimeOptions& runtime);
// Reads what the processes of an ended launch wrote into `folder`. Processes may have been killed.
WatchedRun ReadWatched(const std::string& folder);

}  // namespace dynamiccl
