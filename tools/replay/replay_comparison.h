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

// Who chooses the configs in a replay. With all texts empty NCCL chooses by itself, and DynamICCL is not
// loaded.
struct ReplayArm {
  std::string name;
  std::string policy;
  std::string rules;
  std::string mode;
  // In the simulator: choose the cheapest path, whatever rules and policy say.
  bool cheapest = false;
};

// Name of a second arm with the default settings. Its difference from the default is the noise: a difference
// of another arm counts only if it is larger.
inline constexpr const char* kDefaultAgain = "again";

// One replay of the whole plan.
struct ArmRun {
  std::string library;
  // OperationText of what rank 0 issued.
  std::string operations;
  double wall_us = 0;
  // Microseconds by group of the plan.
  std::vector<double> group_us;
  // Number of elements that were checked.
  uint64_t checked = 0;
  uint64_t wrong = 0;
  // Configs by call of the plan; only the simulator knows them.
  std::vector<CollectiveConfig> configs;
};
using RunArm = std::function<Result<ArmRun>(const ReplayArm&)>;

// Asked before each run but the first, with the number of finished runs. False ends the rounds early.
using GoesOn = std::function<bool(size_t finished)>;

// Time of one row under one arm.
struct ComparedTime {
  // Time of one call, over the rounds.
  Timing us_per_call;
  // Config of the row's calls, as choice_comparison.h names it; empty where it is not known.
  std::string config;
};

// One key of the trace under all arms.
struct ComparedRow {
  // Key, calls, bytes and recorded times of the row. Its replayed times come from one run only and are not
  // used.
  ReplayRow what;
  // Times by arm.
  std::vector<ComparedTime> times;
};

// Result of all rounds.
struct ReplayComparison {
  std::string library;
  std::string operations;
  int ranks = 0;
  // Rounds that were asked for; each arm's Timing says how often it ran.
  int rounds = 0;
  uint64_t checked = 0;
  uint64_t wrong = 0;
  std::vector<std::string> notes;
  std::vector<std::string> arms;
  // Time of the whole plan by arm.
  std::vector<Timing> wall_us;
  std::vector<ComparedRow> rows;
};

// Runs the arms in turns for `rounds` rounds. An error of `run` ends the comparison; it is kInternal when an
// arm issued other operations than the plan's, since its times would not be comparable. Where `goes_on` ends
// the first round early, the result has only the arms that ran, which are the first ones.
Result<ReplayComparison> CompareReplays(const ReplayPlan& plan, const std::vector<ReplayArm>& arms,
                                        int rounds, const RunArm& run, const GoesOn& goes_on = nullptr);

// Writes the comparison as JSON, schema 1 (docs/replay.md describes the fields).
Json ToJson(const ReplayComparison& comparison);
// A table for people: the times of all arms, and each arm's difference from the first in percent. The
// difference is "~" where the quartiles of the rounds overlap, where the arm leaves the row to NCCL, or where
// kDefaultAgain differs from the default by as much.
std::string FormatComparison(const ReplayComparison& comparison);

// Returns the configs to force one after the other. These are every (algorithm, protocol) that NCCL has for a
// collective of the plan, with NCCL's number of channels, and every algorithm with Simple on one channel,
// which may be the best on an unusual fabric. CollNet is left out, because it needs switches that reduce.
std::vector<CollectiveConfig> ConfigsToForce(const ReplayPlan& plan);

// Rules (docs/formats/override_rules.md) that force the config for every size of every collective that has
// it.
std::string RulesThatForce(const CollectiveConfig& config);

// Returns rules with the fastest config of each key. The arms of `comparison` must be the default, followed
// by the configs of `forced` in the same order; the last ones may be missing. A config must be 3 % faster
// than the default, else NCCL keeps the choice, because the smallest of many noisy times is always below a
// single one.
std::string RulesOfFastest(const ReplayComparison& comparison, const std::vector<CollectiveConfig>& forced);

}  // namespace dynamiccl
