// SPDX-License-Identifier: Apache-2.0
// Runs a function in a child process with another user or another network.
#pragma once

#include <grp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace dynamiccl::testing {

inline constexpr uid_t kAnotherUser = 65534;

// Tests that need root ask this, and skip themselves if it is false.
inline bool IsRoot() {
  return ::geteuid() == 0;
}

// Returns the child's exit code; -1 if a signal killed it.
inline int InAChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline bool BecomeAnotherUser() {
  return ::setgroups(0, nullptr) == 0 && ::setgid(kAnotherUser) == 0 && ::setuid(kAnotherUser) == 0;
}

// Returns what `body` returns in a process of another user; 100 if such a process cannot be made.
inline int AsAnotherUser(const std::function<int()>& body) {
  return InAChild([&] { return BecomeAnotherUser() ? body() : 100; });
}

// The same in another network, with this process's user.
inline int InAnotherNetwork(const std::function<int()>& body) {
  return InAChild([&] { return ::unshare(CLONE_NEWNET) == 0 ? body() : 100; });
}

}  // namespace dynamiccl::testing
