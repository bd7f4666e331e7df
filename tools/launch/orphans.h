// SPDX-License-Identifier: Apache-2.0
// Finds processes that a job started and that outlived their parent, such as the ranks of a shell script that
// was ended by a signal.
#pragma once

#include <sys/types.h>

#include <vector>

namespace dynamiccl {

// While a scope lives, a process whose parent ends becomes a child of this process and not of init. The
// destructor restores the former state. At most one scope in a process.
class OrphanScope {
 public:
  OrphanScope();
  ~OrphanScope();
  OrphanScope(const OrphanScope&) = delete;
  OrphanScope& operator=(const OrphanScope&) = delete;

  // Returns the running children of this process that have appeared since the scope was made, and collects
  // those that have ended. `started` has the children that the caller collects itself: they are neither
  // returned nor collected. If /proc cannot be read, the children of the last answer are returned until they
  // are collected.
  std::vector<pid_t> Running(const std::vector<pid_t>& started);

 private:
  int was_subreaper_ = 0;
  // Children that this process had before.
  std::vector<pid_t> before_;
  // The children that Running returned last.
  std::vector<pid_t> running_;
};

}  // namespace dynamiccl
