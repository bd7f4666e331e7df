// SPDX-License-Identifier: Apache-2.0
// Processes on this machine that DynamICCL is loaded in, found in /proc: nothing is asked of them, and no
// process of another user is seen.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace dynamiccl {

struct RunningProcess {
  pid_t id = 0;
  int rank = -1;                                // as its launcher says; -1: it does not
  std::string program;                          // its command line
  std::map<std::string, std::string> settings;  // our variables, as it was started with
  std::string trace;                            // the file that it records into; empty: none

  // A setting's value, as an absolute path with %h, %p and %r replaced; empty where it is not set.
  std::string PathSetting(const char* name) const;
  std::string folder;  // its working directory
};

// Ordered by rank, then by process id. `proc` is the folder to look in.
std::vector<RunningProcess> RunningProcesses(const std::string& proc = "/proc");

}  // namespace dynamiccl
