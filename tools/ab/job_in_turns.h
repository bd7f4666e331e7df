// SPDX-License-Identifier: Apache-2.0
// Starts a job in which settings take turns (src/decision/rule_turns.h) and reads what one of its ranks
// recorded. `ab`, `pilot` and `tune` compare settings this way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch_options.h"
#include "tools/record/recorded_launch.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The settings that take turns in one start of a job, and how they do so.
struct TurnsPlan {
  // Settings as a user of `dynamiccl ab` writes them (docs/ab.md), at least two.
  std::vector<std::string> settings;
  // Steps of a turn; the first of them does not count.
  uint32_t turn_steps = 3;
  // File for the merged trace of the start. Its folder exists.
  std::string trace;
  // File to which the ranks append their output. Empty: they write to the output of this process.
  std::string output_path;
  // Time limit of the start. When it passes, the start is ended, and what was recorded until then counts. 0:
  // no limit.
  std::chrono::milliseconds time_limit{0};
};

// The end of one start of the job, and the calls of its lowest rank.
struct TurnsStart {
  RecordedLaunch recorded;
  // Empty where no process recorded a call.
  SectionCalls calls;
};

// Returns the variables that let `settings` take turns in the ranks of a launch in mode frozen. For a setting
// such as "ring/simple/4" a file of rules is written into `folder`, which must outlive the launch. A setting
// that names a file is used from its place. It is an error when a setting cannot take turns.
Result<EnvironmentChanges> TurnsEnvironment(const std::vector<std::string>& settings, uint32_t turn_steps,
                                            const std::string& folder);

// Starts `program` with the settings of `plan` in turn. `launch` must have neither rules nor a mode. It is an
// error when a setting cannot take turns or when the job cannot be started. A job that fails is no error.
Result<TurnsStart> StartInTurns(LaunchOptions launch, const std::vector<std::string>& program,
                                const TurnsPlan& plan);

// Returns how many whole turns a start with these calls has. Turns begin when the steps have repeated, so a
// job whose calls do not repeat has no turns.
size_t TurnsOfStart(const SectionCalls& calls, uint32_t turn_steps);

}  // namespace dynamiccl
