// SPDX-License-Identifier: Apache-2.0
// One child process: started with a changed environment, ended with its whole process group.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/launch/launch_plan.h"

namespace dynamiccl {

struct ChildOptions {
  std::string output_path;  // standard output and error are appended here; empty: inherited
  bool own_group = true;    // leads a process group, with standard input from /dev/null
};

// Forks and executes `command` (looked up in PATH). A program that cannot be executed is an error here, not
// an exit code. The kernel kills the child when the calling thread's process dies.
Result<pid_t> StartChild(const std::vector<std::string>& command, const EnvironmentChanges& environment,
                         const ChildOptions& options);

// Sends to the process, or to its group; a process that has ended already is no error.
void SignalChild(pid_t pid, bool whole_group, int signal_number);

}  // namespace dynamiccl
