// SPDX-License-Identifier: Apache-2.0
// A test that needs one release of NCCL begins with this macro.
#pragma once

#include <gtest/gtest.h>

#include "tests/real_nccl/nccl_release.h"

// Skips the test when the release was not fetched. Fails the test when the release was fetched but cannot be
// run. Use the macro in the body of a test or in SetUp.
#define REAL_NCCL_REQUIRE_RELEASE(release)                                          \
  if (const std::string not_fetched = WhyNotFetched(release); !not_fetched.empty()) \
    GTEST_SKIP() << not_fetched;                                                    \
  ASSERT_EQ(WhyNotRunnable(release), "")
