// SPDX-License-Identifier: Apache-2.0
// Options that all commands that start ranks share: how many ranks, over which NCCL, under which policy.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "tools/command_line.h"
#include "tools/launch/launcher.h"

namespace dynamiccl {

// The values of these options. The command owns the object, which must outlive the parsing, since CLI11
// writes into it.
struct LaunchOptions {
  // Value of -n. 0: the program is itself a launcher of ranks.
  int n_ranks = 0;
  // Says how the runtime is loaded. PlanLaunch makes its paths absolute.
  RuntimeOptions runtime;
  // --hostccl was given.
  bool force_hostccl = false;
  // --no-hostccl was given.
  bool force_no_hostccl = false;
  // -q: no summary at the end.
  bool quiet = false;
  // --home: the installation to load from; empty: that of this program.
  std::string home;
};

// Registers all launch options, for `run`, `record` and `zero`.
void RegisterLaunchOptions(CLI::App& app, LaunchOptions& options);
// Registers the options for topology, policy, rules, mode and NCCL library, for commands whose ranks run the
// same command again (`bench`, `replay`).
void RegisterRankOptions(CLI::App& app, LaunchOptions& options);
// Registers only --hostccl, --no-hostccl and --home.
void RegisterNcclOptions(CLI::App& app, LaunchOptions& options);

// Reads the policy and the rules as the ranks will. Inside a job a wrong file leaves every call to NCCL, so
// it is refused before the job starts. PlanLaunch calls this too.
Status CheckChoices(const RuntimeOptions& runtime);

// Refuses an empty command. PlanLaunch calls this too.
Status CheckProgramGiven(const std::vector<std::string>& command);

// Builds the plan that starts `command` with these options. Makes the paths in `options` absolute, since
// ranks may change their folder, and decides whether hostccl is used. It is an error when the command is
// empty, when the policy, the rules or the topology cannot be used, or when the installation lacks a part.
Result<LaunchPlan> PlanLaunch(LaunchOptions& options, std::vector<std::string> command);

// Starts ranks that run this same command with the same words. The ranks see torchrun's variables and then do
// the work instead of launching. The runtime is loaded only if a policy, rules or a mode was given.
Result<LaunchOutcome> LaunchSameCommand(const CommandLine& line, const char* command, LaunchOptions& options);

// Returns the exit code of a command whose ranks run the same command again. If a failed rank ended with a
// code below kExitJobFailed, that code is the command's answer. ExitCodeOf maps every other end.
int AnswerOf(const LaunchOutcome& outcome);

// Prints how the launch ended, which policy or rules it used, and where its files are: at most four lines on
// standard error.
void PrintSummary(const LaunchOutcome& outcome, const RuntimeOptions& runtime);

}  // namespace dynamiccl
