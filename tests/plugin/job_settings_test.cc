// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/job_settings.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

// What each release opens was seen with the releases themselves (docs/results/real-nccl.md).
TEST(OwnPluginName, IsOneThatTheReleaseOpens) {
  EXPECT_EQ(OwnPluginName(22203), "STATIC_PLUGIN");
  EXPECT_EQ(OwnPluginName(22703), "libdynamiccl.so") << "neither the word nor a path";
  EXPECT_EQ(OwnPluginName(22705), "STATIC_PLUGIN");
  EXPECT_EQ(OwnPluginName(0), "STATIC_PLUGIN") << "an unknown version is taken for a new one";
  EXPECT_NE(OwnPluginName(22105), "STATIC_PLUGIN") << "before 2.22 it opens a file";
}

}  // namespace
}  // namespace dynamiccl
