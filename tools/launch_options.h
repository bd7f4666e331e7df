// SPDX-License-Identifier: Apache-2.0
// The options that commands share which start ranks: how many, over what, under which policy.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "tools/command_line.h"
#include "tools/launch/launcher.h"

namespace dynamiccl {

struct LaunchOptions {
  int n_ranks = 0;
  RuntimeOptions runtime;
  bool force_hostccl = false;
  bool force_no_hostccl = false;
  bool quiet = false;
  std::string home;
};

// All of run, record and zero.
void RegisterLaunchOptions(CLI::App& app, LaunchOptions& options);
// Those of the commands whose ranks are the same command again (bench, replay): topology, policy, mode, NCCL.
void RegisterRankOptions(CLI::App& app, LaunchOptions& options);
// --hostccl, --no-hostccl, --home.
void RegisterNcclOptions(CLI::App& app, LaunchOptions& options);

// Makes paths absolute, since ranks may change their folder, and settles whether hostccl is used; then fills
// a plan.
Result<LaunchPlan> PlanLaunch(LaunchOptions& options, std::vector<std::string> command);

// Starts ranks that are this command again, with the words that it was given.
Result<LaunchOutcome> LaunchSameCommand(const CommandLine& line, const char* command, LaunchOptions& options);

// What ranks that are the same command end with by themselves is its answer; anything else is ExitCodeOf.
int AnswerOf(const LaunchOutcome& outcome);

// At most five lines on standard error.
void PrintSummary(const LaunchOutcome& outcome, const RuntimeOptions& runtime);

}  // namespace dynamiccl
