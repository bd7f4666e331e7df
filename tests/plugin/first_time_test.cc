// SPDX-License-Identifier: Apache-2.0
#include "plugin/border/first_time.h"

#include <gtest/gtest.h>

#include "tests/support/child_process.h"

namespace dynamiccl {
namespace {

// A reason that contains a number may be new at each call of a job that runs for weeks.
TEST(FirstTime, EndsWhereReasonsHaveNoEnd) {
  testing_support::InChildProcess([] {
    EXPECT_TRUE(FirstTime("a reason"));
    EXPECT_FALSE(FirstTime("a reason"));
    int logged = 0;
    for (int call = 0; call < 100'000; ++call) logged += FirstTime("call " + std::to_string(call)) ? 1 : 0;
    EXPECT_LE(logged, 1000);
    EXPECT_FALSE(FirstTime("another reason"));
  });
}

}  // namespace
}  // namespace dynamiccl
