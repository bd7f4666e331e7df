// SPDX-License-Identifier: Apache-2.0
// Launches a job and finds out who decided its calls: the policy, rules, the guard or NCCL. The numbers come
// from the job's metrics (docs/telemetry.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/launch/launcher.h"

namespace dynamiccl {

// Says who decided the calls of one rank. All ranks decide alike, so one rank stands for the job.
struct DecisionAccount {
  // -1: unknown.
  int rank = -1;
  // Number of NCCL's questions that each decider answered. Keys are the names of DecidedBy.
  std::map<std::string, uint64_t> decided_by;
  // Number of times that the guard took choices back because they were slower than NCCL's; nothing without a
  // guard.
  std::optional<uint64_t> taken_back;

  uint64_t calls() const;
};

// Returns the account of the lowest rank that decided calls. `metrics` has the text of each process's metrics
// file. Returns nothing if NCCL asked no process.
std::optional<DecisionAccount> DecisionsIn(const std::vector<std::string>& metrics);
// One line such as "rank 0: of 60 calls the policy chose for 45, and 15 were left to NCCL; the guard took
// choices back 2 times".
std::string Describe(const DecisionAccount& account);

// The end of the launch, and who decided its calls.
struct DecidedLaunch {
  LaunchOutcome outcome;
  // False when this process cannot read the metrics, because the job wrote them elsewhere.
  bool counted = false;
  std::optional<DecisionAccount> decisions;
  // The text of each process's metrics.
  std::vector<std::string> metrics;
};

// Returns the line about who decided. It also says so if no call was decided or nothing was counted.
std::string Describe(const DecidedLaunch& launch);

// The mode of a launch, as an option or the setting states it.
std::string ModeOf(const RuntimeOptions& runtime);
// True if an option or a setting lets a policy, rules or experiments decide in this job.
bool Decides(const RuntimeOptions& runtime);

// True if all processes of a launch run on this machine. This is known for ranks that this process starts and
// for torchrun, which starts processes only on its own machine.
bool RunsHere(int n_ranks, const std::string& program);

// Launches `plan` and reads the metrics that its processes write. `metrics` is the user's DYNAMICCL_METRICS
// (with %h, %p and %r); if it is empty, the metrics go to a temporary folder. A temporary folder is used only
// if all processes run on this machine (RunsHere), else nothing is counted.
Result<DecidedLaunch> LaunchDecided(LaunchPlan plan, const std::string& metrics);

}  // namespace dynamiccl
