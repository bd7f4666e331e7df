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

  // Returns the children of this process that have appeared since the scope was made and that run. Those of
  // them that have ended, and are not in `started`, are collected. `started` are children that the caller
  // collects itself; they are not returned. A child that was returned is returned until it is collected, also
  // when /proc cannot be read meanwhile.
  std::vector<pid_t> Running(const std::vector<pid_t>& started);

 private:
  int was_subreaper_ = 0;
  // Children that this process had before.
  std::vector<pid_t> before_;
  // What Running returned last.
  std::vector<pid_t> running_;
};

}  // namespace dynamiccl
