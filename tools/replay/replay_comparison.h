// SPDX-License-Identifier: Apache-2.0
// The same replay under several choosers in turns: default, ours, best. Whatever disturbs the machine
// meanwhile hits all of them, and each round begins with another one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/report/timing.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {

// Who chooses. All empty: NCCL by itself, nothing of ours loaded.
struct ReplayArm {
  std::string name;
  std::string policy;
  std::string rules;
  std::string mode;
  bool cheapest = false;  // in the simulator: the cheapest path, whatever rules and policy say
};

// One replay of the whole plan.
struct ArmRun {
  std::string library;
  std::string operations;  // OperationText of what rank 0 issued
  double wall_us = 0;
  std::vector<double> group_us;  // per group of the plan
  uint64_t checked = 0;          // elements
  uint64_t wrong = 0;
  std::vector<CollectiveConfig> configs;  // by call of the plan, where they are known: in the simulator
};
using RunArm = std::function<Result<ArmRun>(const ReplayArm&)>;

struct ComparedTime {
  Timing us_per_call;  // over the rounds
  std::string config;  // of the row's calls, as choice_comparison.h names it, empty where nobody says
};

struct ComparedRow {
  ReplayRow what;                   // key, calls, bytes, recorded; the times in it are those of one run
  std::vector<ComparedTime> times;  // by arm
};

struct ReplayComparison {
  std::string library;
  std::string operations;
  int ranks = 0;
  int rounds = 0;
  uint64_t checked = 0;
  uint64_t wrong = 0;
  std::vector<std::string> notes;
  std::vector<std::string> arms;
  std::vector<Timing> wall_us;  // of the whole plan, by arm
  std::vector<ComparedRow> rows;
};

// The arms take turns for `rounds` rounds. Errors: those of `run`, and kInternal where an arm issued other
// operations than the plan's.
Result<ReplayComparison> CompareReplays(const ReplayPlan& plan, const std::vector<ReplayArm>& arms,
                                        int rounds, const RunArm& run);

// "schema" 1; docs/replay.md has its fields.
Json ToJson(const ReplayComparison& comparison);
// A table for people: the first arm's times, and the others' beside it in percent of it.
std::string FormatComparison(const ReplayComparison& comparison);

// The best config of each (collective, size class) of a trace, found by replaying it under each of them.

// What is forced in turn: every (algorithm, protocol) that NCCL has for a collective of the plan, with NCCL's
// channels. CollNet is left out: it needs switches that sum.
std::vector<CollectiveConfig> ConfigsToForce(const ReplayPlan& plan);

// The config as rules (docs/formats/override_rules.md) for every size of every collective that has it.
std::string RulesThatForce(const CollectiveConfig& config);

// Rules for the best. `comparison`'s arms are the default, then `forced`. A config must be 3 % faster than
// the default, or NCCL is left alone: the fastest of many noisy times is always faster than the first.
std::string RulesOfFastest(const ReplayComparison& comparison, const std::vector<CollectiveConfig>& forced);

}  // namespace dynamiccl
