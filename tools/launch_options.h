// SPDX-License-Identifier: Apache-2.0
// The options that run, record and zero share: how many ranks, over what, under which policy.
#pragma once

#include <CLI/App.hpp>
#include <string>

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

void RegisterLaunchOptions(CLI::App& app, LaunchOptions& options);

// Makes paths absolute, since ranks may change their folder, and settles whether hostccl is used; then fills
// a plan.
Result<LaunchPlan> PlanLaunch(LaunchOptions& options, std::vector<std::string> command);

// At most five lines on standard error.
void PrintSummary(const LaunchOutcome& outcome, const RuntimeOptions& runtime);

}  // namespace dynamiccl
