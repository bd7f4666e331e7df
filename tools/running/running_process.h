// SPDX-License-Identifier: Apache-2.0
// Finds processes on this machine into which DynamICCL is loaded, by reading /proc. The processes are not
// contacted, and those of other users are not visible.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace dynamiccl {

// One process, as /proc shows it.
struct RunningProcess {
  pid_t id = 0;
  // Rank according to the variables of the process's launcher; -1: unknown.
  int rank = -1;
  // Command line of the process.
  std::string program;
  // The variables of DynamICCL with which the process was started.
  std::map<std::string, std::string> settings;
  // The trace file that it has mapped; empty: it does not record.
  std::string trace;

  // Value of a setting as an absolute path, with %h, %p and %r replaced; empty where it is not set.
  std::string PathSetting(const char* name) const;
  // Working directory of the process.
  std::string folder;
};

// Ordered by rank, then by process id. `proc` is the folder to read, another one in tests.
std::vector<RunningProcess> RunningProcesses(const std::string& proc = "/proc");

}  // namespace dynamiccl
