// SPDX-License-Identifier: Apache-2.0
// Starts one child process with a changed environment and signals it, or its whole process group.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/launch/launch_plan.h"

namespace dynamiccl {

// Options that say how a child is attached to this process.
struct ChildOptions {
  // File to which standard output and error are appended; created if needed. Empty: the child uses those of
  // this process.
  std::string output_path;
  // The child leads a process group and reads /dev/null. False keeps it in the caller's group, on the
  // terminal.
  bool own_group = true;
};

// Forks and executes `command`, whose first word is looked up in PATH. `environment` is set over this
// process's own variables. Returns once the program runs; a program that cannot be executed is an error here
// (kNotFound or kInvalidArgument) and not an exit code of the child.
//
// The caller owns the child and must wait for it. The kernel sends the child SIGKILL when the thread that
// called StartChild ends, so call it from a thread that outlives the child.
Result<pid_t> StartChild(const std::vector<std::string>& command, const EnvironmentChanges& environment,
                         const ChildOptions& options);

// Sends `signal_number` to the process, or to the group that it leads when `whole_group` is set. A process
// that has already ended is not an error.
void SignalChild(pid_t pid, bool whole_group, int signal_number);

}  // namespace dynamiccl
