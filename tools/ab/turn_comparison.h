// SPDX-License-Identifier: Apache-2.0
// Compares the settings that took turns within a job (src/decision/rule_turns.h) by the time of a training
// step under each of them. The times come from the trace of one of the job's ranks, or from one trace of each
// of several starts of the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/statistics.h"
#include "src/base/status.h"
#include "tools/report/json_output.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {

// The smallest difference between the step times of two settings that matters: 0.005 as a natural logarithm,
// which is 0.5 %. TurnComparison::MoreSteps says how many more steps are needed to detect it.
inline constexpr double kToldApart = 0.005;

// The fewest rounds (one turn of each setting) for a comparison. The signed-rank interval needs six rounds;
// with fewer it is unbounded.
inline constexpr size_t kFewestRounds = 6;

// The recorded times say something about steps only if TurnComparison::steady_share is at least this share.
// Below it, most of the job's time is spent outside of the steps.
inline constexpr double kLeastSteadyShare = 0.3;

// The result for one setting.
struct SettingTimes {
  std::string name;
  size_t turns = 0;    // turns that entered the comparison
  double step_ms = 0;  // median over its turns
  // Mean time of a step in each turn of the setting, in milliseconds.
  std::vector<double> samples_ms;
  // Step time divided by that of the first setting, compared within rounds. The first setting has ratio 1.
  double ratio = 1;
  ConfidenceInterval interval{1, 1};
};

// The result for all settings of a job. In each start of the job, the communicator with the most turns is
// used.
struct TurnComparison {
  std::vector<SettingTimes> settings;
  uint32_t turn_steps = 0;  // steps in each turn
  size_t calls_of_step = 0;
  size_t rounds = 0;    // rounds in which every setting had a usable turn
  size_t left_out = 0;  // turns left out because their number of calls was not the usual one
  double noise = 0;     // standard deviation of one turn's time, as a share of the time
  // Says how regular the steps are, from 0 to 1. It is the time that all turns of a start of the job would
  // take if each were as long as the median turn, divided by the time from the first turn to the last. The
  // share is small where the program issues many steps ahead and then waits for all of them. With several
  // starts it is the smallest share.
  double steady_share = 1;

  // Returns how many more steps the job must run before a difference of kToldApart can be distinguished from
  // noise. 0: the job ran long enough. -1: there are fewer than six rounds, too few for an estimate.
  double MoreSteps() const;
  // True if the recorded times say something about steps, which needs a steady_share of at least
  // kLeastSteadyShare.
  bool SeesSteps() const { return steady_share >= kLeastSteadyShare; }
};

// Compares the settings `names`, given in the order in which the job took them. A turn had `turn_steps`
// steps. `starts` has the calls of one rank for each start of the job; rounds never mix turns of different
// starts. It is an error when no turn was completed.
Result<TurnComparison> CompareTurns(const std::vector<SectionCalls>& starts,
                                    const std::vector<std::string>& names, uint32_t turn_steps);

// The table and the sentence below it, for a terminal.
std::string Describe(const TurnComparison& comparison);
Json ToJson(const TurnComparison& comparison);

}  // namespace dynamiccl
