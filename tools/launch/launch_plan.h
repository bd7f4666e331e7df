// SPDX-License-Identifier: Apache-2.0
// What to start and how: the value that the launcher takes.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

using EnvironmentChanges = std::map<std::string, std::string>;

struct LaunchPlan {
  std::vector<std::string> command;
  // Ranks to start with torchrun's variables; 0 starts the command once, as it stands: it is a launcher of
  // its own.
  int n_ranks = 0;
  EnvironmentChanges environment;  // set in every process, over what this process has
  std::string output_path;  // standard output and error of all ranks are appended here; empty: inherited
  std::chrono::milliseconds grace{5000};  // between SIGTERM and SIGKILL: time to write a checkpoint or a core
  std::chrono::milliseconds time_limit{0};  // 0: none
};

// How DynamICCL is loaded into the processes of a plan.
struct RuntimeOptions {
  std::string mode;
  std::string policy;
  std::string rules;
  std::string trace;
  std::string decision_log;
  std::string topology;
  bool preload = true;
  bool hostccl = false;
};

// The variables that load the runtime: LD_PRELOAD, LD_LIBRARY_PATH (both put before what is set already) and
// settings. Fails when the build lacks an object that the options need.
Result<EnvironmentChanges> RuntimeEnvironment(const Installation& installation,
                                              const RuntimeOptions& options);

// torchrun's variables for one rank of one machine.
EnvironmentChanges RankEnvironment(int rank, int n_ranks, int master_port);

// Whether an NVIDIA GPU can be used here: then the job's own NCCL is the default, else hostccl.
bool MachineHasGpu();

}  // namespace dynamiccl
