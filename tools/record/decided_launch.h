// SPDX-License-Identifier: Apache-2.0
// A launch after which it is known who decided the calls: the policy, rules, the guard or NCCL. The numbers
// are the job's own metrics (docs/telemetry.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/launcher.h"

namespace dynamiccl {

// Who decided the calls of one rank. All ranks decide alike, so one rank stands for the job.
struct DecisionAccount {
  // -1: unknown.
  int rank = -1;
  // NCCL's questions by who answered, under the names of DecidedBy.
  std::map<std::string, uint64_t> decided_by;
  // Number of times that the guard took choices back because they were slower than NCCL's; nothing without a
  // guard.
  std::optional<uint64_t> taken_back;

  uint64_t calls() const;
};

// The account in the metrics of the job's processes, each the text of one file. It is the one of the lowest
// known rank. Nothing when no process was asked.
std::optional<DecisionAccount> DecisionsIn(const std::vector<std::string>& metrics);
// One line such as "rank 0: of 60 calls the policy chose for 45, and 15 were left to NCCL; the guard took
// choices back 2 times".
std::string Describe(const DecisionAccount& account);

// The end of the launch, and who decided its calls.
struct DecidedLaunch {
  LaunchOutcome outcome;
  // False when the job wrote its metrics where this process cannot read them.
  bool counted = false;
  std::optional<DecisionAccount> decisions;
  // The text of each process's metrics.
  std::vector<std::string> metrics;
};

// The line about who decided, also where no call was decided or nobody counted.
std::string Describe(const DecidedLaunch& launch);

// The mode of a launch, by an option or by the setting.
std::string ModeOf(const RuntimeOptions& runtime);
// Whether a policy, rules or experiments decide in this job, by an option or by a setting.
bool Decides(const RuntimeOptions& runtime);

// Whether all processes of a launch run on this machine: ranks that this process starts, and those of
// torchrun, which starts processes of its own machine only.
bool RunsHere(int n_ranks, const std::string& program);

// Launches `plan` and reads the metrics that its processes write: into `metrics` where the user set
// DYNAMICCL_METRICS (with %h, %p and %r), else into a temporary folder. Without the setting it does not count
// where processes may run on other machines: only ranks that this process starts and those of torchrun are
// counted.
Result<DecidedLaunch> LaunchDecided(LaunchPlan plan, const std::string& metrics);

}  // namespace dynamiccl
