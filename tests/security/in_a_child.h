// SPDX-License-Identifier: Apache-2.0
// Runs a function in a child process that is somebody else.
#pragma once

#include <grp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace dynamiccl::testing {

inline constexpr uid_t kAnotherUser = 65534;

// Asked by tests that need root, to say that they are skipped.
inline bool IsRoot() {
  return ::geteuid() == 0;
}

// The child's exit code; -1 when it was killed.
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

// What `body` returns in a process of another user; 100 when there can be none.
inline int AsAnotherUser(const std::function<int()>& body) {
  return InAChild([&] { return BecomeAnotherUser() ? body() : 100; });
}

// As above, in a network of its own, with this process's user.
inline int InAnotherNetwork(const std::function<int()>& body) {
  return InAChild([&] { return ::unshare(CLONE_NEWNET) == 0 ? body() : 100; });
}

}  // namespace dynamiccl::testing
