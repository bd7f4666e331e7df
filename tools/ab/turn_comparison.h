// SPDX-License-Identifier: Apache-2.0
// What a training step takes under each of several settings that took turns within one job
// (src/decision/rule_turns.h), read from the trace of one of its ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/statistics.h"
#include "src/base/status.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// A difference of this size, in logs, is what TurnComparison::MoreSteps asks for.
inline constexpr double kToldApart = 0.005;

// One setting.
struct SettingTimes {
  std::string name;
  size_t turns = 0;    // that count
  double step_ms = 0;  // median over its turns
  // Time of a step over that of the first setting, from turns of the same round. The first setting has 1.
  double ratio = 1;
  ConfidenceInterval interval{1, 1};
};

// All settings of a job, on the communicator with the most calls.
struct TurnComparison {
  std::vector<SettingTimes> settings;
  uint32_t turn_steps = 0;  // steps of a turn
  size_t calls_of_step = 0;
  size_t rounds = 0;    // in which every setting had a turn that counts
  size_t left_out = 0;  // turns whose calls were not those of the others
  double noise = 0;     // standard deviation of a turn's time over that of the first setting, as a share

  // Steps that the job would have to go on for, until differences of kToldApart are told from none; 0: it was
  // long enough. Nothing is known of it below six rounds: then -1.
  double MoreSteps() const;
};

// Compares the settings `names`, in the order in which the job was given them. The job's turns had
// `turn_steps` steps. It is an error when no turn was completed.
Result<TurnComparison> CompareTurns(const SectionCalls& calls, const std::vector<std::string>& names,
                                    uint32_t turn_steps);

// The table and the sentence below it, for a terminal.
std::string Describe(const TurnComparison& comparison);
Json ToJson(const TurnComparison& comparison);

}  // namespace dynamiccl
