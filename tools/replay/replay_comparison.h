// SPDX-License-Identifier: Apache-2.0
// Compares replays of the same trace with several choosers: NCCL's default, the user's policy or rules, and
// the best configs. The choosers take turns, and each round begins with another one, so that a disturbance of
// the machine affects all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/report/timing.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {

// An arm of a comparison, that is who chooses the configs in a replay. With all texts empty NCCL chooses by
// itself, and DynamICCL is not loaded.
struct ReplayArm {
  std::string name;
  std::string policy;
  std::string rules;
  std::string mode;
  // True: the simulator chooses the config with the shortest simulated time for each call, and ignores rules
  // and policy. Only for replays in the simulator.
  bool cheapest = false;
};

// Name of a second arm that, as the first one, leaves every choice to NCCL. The difference between these two
// is noise: the difference of another arm counts only if it is larger.
inline constexpr const char* kDefaultAgain = "again";

// The result of one replay of the whole plan with one arm.
struct ArmRun {
  std::string library;
  // OperationText of what rank 0 issued.
  std::string operations;
  double wall_us = 0;
  // Microseconds of each group of calls, in the order of the plan.
  std::vector<double> group_us;
  // Number of elements that were checked.
  uint64_t checked = 0;
  uint64_t wrong = 0;
  // The config of each call, in the order of the plan. Only the simulator knows the configs; for a replay
  // over a library it is empty.
  std::vector<CollectiveConfig> configs;
};
using RunArm = std::function<Result<ArmRun>(const ReplayArm&)>;

// A function that is called before each run except the first, with the number of finished runs. If it returns
// false, the comparison ends early.
using GoesOn = std::function<bool(size_t finished)>;

// The time of one row of the table with one arm.
struct ComparedTime {
  // Microseconds of one call, as a statistic over the rounds.
  Timing us_per_call;
  // Config of the row's calls, as choice_comparison.h names it; empty where it is not known.
  std::string config;
};

// One row of the table: the calls of one key of the trace, with their times under all arms.
struct ComparedRow {
  // Key, calls, bytes and recorded times of the row. Its replayed times are of a single run and are not used.
  ReplayRow what;
  // Times by arm.
  std::vector<ComparedTime> times;
};

// The result of all rounds of a comparison.
struct ReplayComparison {
  std::string library;
  std::string operations;
  int ranks = 0;
  // Number of rounds that were asked for. Each arm's Timing says how often the arm really ran.
  int rounds = 0;
  uint64_t checked = 0;
  uint64_t wrong = 0;
  std::vector<std::string> notes;
  std::vector<std::string> arms;
  // Microseconds of the whole replay, one entry for each arm.
  std::vector<Timing> wall_us;
  std::vector<ComparedRow> rows;
};

// Replays `plan` with each arm once in each of `rounds` rounds. An error of `run` ends the comparison. An arm
// that issues other operations than the plan's is the error kInternal, because its times could not be
// compared. If `goes_on` ends the first round early, the result has only the arms that ran, which are the
// first ones.
Result<ReplayComparison> CompareReplays(const ReplayPlan& plan, const std::vector<ReplayArm>& arms,
                                        int rounds, const RunArm& run, const GoesOn& goes_on = nullptr);

// Writes the comparison as JSON, schema 1 (docs/replay.md describes the fields).
Json ToJson(const ReplayComparison& comparison);
// Returns a table for people: the times of all arms, and each arm's difference from the first arm in percent.
// "~" stands for a difference that is noise: the quartiles over the rounds overlap, the arm leaves the row's
// calls to NCCL, or the arm kDefaultAgain differs from the default by as much.
std::string FormatComparison(const ReplayComparison& comparison);

// Returns the configs to force one after the other. These are every (algorithm, protocol) that NCCL has for a
// collective of the plan, with NCCL's number of channels, and every algorithm with Simple on one channel,
// which may be the best on an unusual fabric. CollNet is left out, because it needs switches that reduce.
std::vector<CollectiveConfig> ConfigsToForce(const ReplayPlan& plan);

// Rules (docs/formats/override_rules.md) that force the config for every size of every collective that has
// it.
std::string RulesThatForce(const CollectiveConfig& config);

// A comparison of the default, its first arm, with forced configs. Arm i + 1 forces `forced[i]`. If the
// search ran out of time, the last configs of `forced` have no arm.
struct ForcedSearch {
  ReplayComparison comparison;
  std::vector<CollectiveConfig> forced;
};

// Returns the configs to force after a search with ConfigsToForce: the fastest algorithm and protocol of each
// collective and size class with 2, 4, 8, 16 and 32 channels.
std::vector<CollectiveConfig> FurtherConfigs(const ForcedSearch& search);

// Returns rules with the fastest config of each collective and size class, where the time of a config is a
// share of the default's time in the same search. A config must be 3 % faster than the default, else NCCL
// keeps the choice. Without this margin noise would decide: the smallest of many noisy times is lower than a
// single one.
std::string RulesOfFastest(const std::vector<ForcedSearch>& searches);

}  // namespace dynamiccl
