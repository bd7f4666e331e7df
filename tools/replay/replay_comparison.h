// SPDX-License-Identifier: Apache-2.0
// The same replay under several choosers in turns: default, ours, best. A disturbance of the machine hits all
// of them, and each round begins with another one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/json_output.h"
#include "tools/report/timing.h"
#include "traces/replay/replay_summary.h"

namespace dynamiccl {

// One chooser. With all texts empty NCCL chooses by itself, and nothing of DynamICCL is loaded.
struct ReplayArm {
  std::string name;
  std::string policy;
  std::string rules;
  std::string mode;
  // In the simulator: take the cheapest path, whatever rules and policy say.
  bool cheapest = false;
};

// Name of an arm that is the default once more. How far it lies from the default is the noise: no other arm's
// difference counts that is smaller.
inline constexpr const char* kDefaultAgain = "again";

// One replay of the whole plan.
struct ArmRun {
  std::string library;
  // OperationText of what rank 0 issued.
  std::string operations;
  double wall_us = 0;
  // By group of the plan.
  std::vector<double> group_us;
  // Elements checked.
  uint64_t checked = 0;
  uint64_t wrong = 0;
  // By call of the plan; only the simulator knows them.
  std::vector<CollectiveConfig> configs;
};
using RunArm = std::function<Result<ArmRun>(const ReplayArm&)>;

// Time of one row under one arm.
struct ComparedTime {
  // Over the rounds.
  Timing us_per_call;
  std::string config;  // of the row's calls, as choice_comparison.h names it, empty where nobody says
};

// One key of the trace under all arms.
struct ComparedRow {
  // Key, calls, bytes and recorded times. The replayed times in it are those of one run and not used.
  ReplayRow what;
  // By arm.
  std::vector<ComparedTime> times;
};

// Result of all rounds.
struct ReplayComparison {
  std::string library;
  std::string operations;
  int ranks = 0;
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
// arm issued other operations than the plan's, since its times would not be comparable.
Result<ReplayComparison> CompareReplays(const ReplayPlan& plan, const std::vector<ReplayArm>& arms,
                                        int rounds, const RunArm& run);

// Schema 1; docs/replay.md has the fields.
Json ToJson(const ReplayComparison& comparison);
// A table for people: the times of all arms, and each arm's difference from the first in percent; "~" where
// the quartiles of the rounds overlap, the arm leaves the row to NCCL, or kDefaultAgain differs by as much.
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
