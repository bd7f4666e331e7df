// SPDX-License-Identifier: Apache-2.0
// A launch as a value: which command to start, how often, and with which environment. The launcher
// (launcher.h) carries it out.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

// Variables to set in a child, by name.
using EnvironmentChanges = std::map<std::string, std::string>;

// A command, the number of its ranks and their environment. Commands build a plan from their options;
// Launch() reads it and changes nothing in it.
struct LaunchPlan {
  std::vector<std::string> command;
  // Number of ranks to start with torchrun's variables. 0 starts the command once with the environment as it
  // stands: the command is then a launcher of its own, such as torchrun or mpirun.
  int n_ranks = 0;
  // Variables for every process; they override those of this process.
  EnvironmentChanges environment;
  // File to which all ranks append standard output and error. Empty: they use those of this process.
  std::string output_path;
  // Time between SIGTERM and SIGKILL, in which a rank may write a checkpoint or a core file.
  std::chrono::milliseconds grace{5000};
  // Time after which the launch is ended. 0: no limit.
  std::chrono::milliseconds time_limit{0};
};

// Says how DynamICCL is loaded into the processes of a plan. An empty text keeps the value of the setting's
// variable in the user's environment.
struct RuntimeOptions {
  // Value of DYNAMICCL_TIMES: which collectives are timed.
  std::string times;
  // Value of DYNAMICCL_MODE: off, observe, frozen or adaptive.
  std::string mode;
  // Policy file (.dcpolicy).
  std::string policy;
  // Override rules, CSV or TOML.
  std::string rules;
  // Site store (.dcsite), read at the start and written at the end of a run in mode adaptive.
  std::string site_store;
  // Path of the trace, in which %h and %p stand for host and process.
  std::string trace;
  // Path of the decision log, in which %r stands for the rank.
  std::string decision_log;
  // Topology of hostccl: a TOML file or the name of a preset.
  std::string topology;
  // Settings file that Python applies to PyTorch (docs/formats/settings.md).
  std::string framework_settings;
  // Path of the report of each Python process, in which %h and %p stand for host and process.
  std::string framework_report;
  // Load libdynamiccl.so by LD_PRELOAD.
  bool preload = true;
  // Let the program find hostccl as its libnccl.so.2.
  bool hostccl = false;
};

// Returns the variables that load the runtime: LD_PRELOAD, LD_LIBRARY_PATH and PYTHONPATH, to which the
// user's own values are appended, and the settings of `options`. It is an error (kUnsupported) when the build
// lacks an object that the options need.
Result<EnvironmentChanges> RuntimeEnvironment(const Installation& installation,
                                              const RuntimeOptions& options);

// torchrun's variables for one rank of a job on one machine. They also set OMP_NUM_THREADS=1 for more than
// one rank unless the user set it, as torchrun does.
EnvironmentChanges RankEnvironment(int rank, int n_ranks, int master_port);

// True if the machine has an NVIDIA GPU driver. If so, the job's own NCCL is the default, else hostccl.
bool MachineHasGpu();

}  // namespace dynamiccl
