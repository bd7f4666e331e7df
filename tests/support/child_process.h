// SPDX-License-Identifier: Apache-2.0
// Runs part of a test in a forked child: for code whose state is per process, such as variables read once and
// loaded plugins.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

namespace dynamiccl::testing_support {

// Expectations that fail in `body` are printed by the child and fail the parent's test. The parent must have
// no threads.
inline void InChildProcess(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child's part failed, see above";
}

}  // namespace dynamiccl::testing_support
