// SPDX-License-Identifier: Apache-2.0
// How long communicators wait: by the user's setting, by the program's request, or by default.
#include "src/hostccl/timeout.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/nccl_abi/host_timeout.h"
#include "tests/src/hostccl/make_communicators.h"

namespace dynamiccl::hostccl {
namespace {

int64_t Milliseconds() {
  const auto timeout = TimeoutMs();
  return timeout ? *timeout : -1;
}

// All checks are in one test, because the process keeps the longest request.
TEST(Timeout, IsTheLongestAskedForUnlessTheUserSetsIt) {
  ::unsetenv("HOSTCCL_TIMEOUT_MS");
  EXPECT_EQ(Milliseconds(), 30000);
  EXPECT_EQ(hostcclRaiseTimeout(15000), ncclSuccess);
  EXPECT_EQ(Milliseconds(), 30000) << "never below the default";
  EXPECT_EQ(hostcclRaiseTimeout(1810000), ncclSuccess);
  EXPECT_EQ(hostcclRaiseTimeout(15000), ncclSuccess);
  EXPECT_EQ(Milliseconds(), 1810000) << "a later, shorter one takes nothing from it";
  EXPECT_EQ(hostcclRaiseTimeout(0), ncclInvalidArgument);
  ::setenv("HOSTCCL_TIMEOUT_MS", "200", 1);
  EXPECT_EQ(Milliseconds(), 200);
  ::setenv("HOSTCCL_TIMEOUT_MS", "0", 1);
  EXPECT_FALSE(TimeoutMs());
  ::unsetenv("HOSTCCL_TIMEOUT_MS");
  EXPECT_EQ(Milliseconds(), 1810000);
}

TEST(Timeout, OfASplitCommunicatorIsWhatWasAskedForBeforeTheSplit) {
  ::unsetenv("HOSTCCL_TIMEOUT_MS");
  const auto parents = testing::MakeCommunicators(2);
  ASSERT_EQ(hostcclRaiseTimeout(7'200'000), ncclSuccess);
  testing::SpawnThreads(2, [&](int rank) {
    Communicator& parent = *parents[static_cast<size_t>(rank)];
    EXPECT_LT(parent.settings().timeout_ms, 7'200'000);
    EXPECT_EQ(parent.timeout_ms(), 7'200'000) << "the parent waits as long";
    const auto child = SplitCommunicator(parent, {.color = 0, .key = rank, .config = parent.config()});
    ASSERT_TRUE(child.has_value()) << child.error().message;
    EXPECT_EQ((*child)->settings().timeout_ms, 7'200'000);
  });
}

}  // namespace
}  // namespace dynamiccl::hostccl
