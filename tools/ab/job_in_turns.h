// SPDX-License-Identifier: Apache-2.0
// Starts a job in which settings take turns: each setting is in effect for some steps, then the next one
// (src/decision/rule_turns.h). Reads what one rank of the job recorded. `ab`, `pilot` and `tune` compare
// settings this way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch_options.h"
#include "tools/record/recorded_launch.h"
#include "traces/format/trace.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The settings that take turns in one start of a job, the number of steps for each, the time limit, and the
// files for trace and output.
struct TurnsPlan {
  // Settings as a user of `dynamiccl ab` writes them (docs/ab.md), at least two.
  std::vector<std::string> settings;
  // Number of training steps for which a setting is in effect before the next one follows. The time of the
  // first of these steps is not used.
  uint32_t turn_steps = 3;
  // File for the trace of the whole job, merged from those of its processes. The file's folder must exist.
  std::string trace;
  // File to which the ranks append their output. Empty: they write to the output of this process.
  std::string output_path;
  // Time limit of the job. When it passes, the job is ended, and the calls recorded until then are used. 0:
  // no limit.
  std::chrono::milliseconds time_limit{0};
};

// Holds the outcome of a job that was started with a TurnsPlan, and the recorded calls of its lowest rank.
struct TurnsStart {
  RecordedLaunch recorded;
  // Empty where no process recorded a call.
  SectionCalls calls;
  // The whole trace; without sections where no process recorded a call.
  Trace trace;
};

// Returns an error if the user's environment decides which configs are in effect, by rules, by the choices of
// an earlier run, or by a policy that `given` does not replace. What is compared here would then not be
// compared with NCCL's choice.
Status CheckNothingInherited(const RuntimeOptions& given);

// Returns the variables that let `settings` take turns in the ranks of a launch in mode frozen. For a setting
// such as "ring/simple/4" a file of rules is written into `folder`, which must outlive the launch. A file
// that a setting names is used where it lies. It is an error when a setting cannot take turns.
Result<EnvironmentChanges> TurnsEnvironment(const std::vector<std::string>& settings, uint32_t turn_steps,
                                            const std::string& folder);

// Starts `program` with the settings of `plan` in turn. `launch` must have neither rules nor a mode. It is an
// error when a setting cannot take turns or when the job cannot be started. A job that fails is no error.
Result<TurnsStart> StartInTurns(LaunchOptions launch, const std::vector<std::string>& program,
                                const TurnsPlan& plan);

// Returns how many complete turns the settings would have in a job that makes these calls. Turns begin only
// after the job has repeated its steps, so a job whose calls do not repeat has no turns.
size_t TurnsOfStart(const SectionCalls& calls, uint32_t turn_steps);

}  // namespace dynamiccl
