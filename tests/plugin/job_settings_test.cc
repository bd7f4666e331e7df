// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/job_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "plugin/runtime/plugin_offers.h"

namespace dynamiccl {
namespace {

// The name that each release opens was found by running the releases (docs/results/real-nccl.md).
TEST(OwnPluginName, IsOneThatTheReleaseOpens) {
  EXPECT_EQ(OwnPluginName(22203), "STATIC_PLUGIN");
  EXPECT_EQ(OwnPluginName(22703), "libdynamiccl.so") << "neither the word nor a path";
  EXPECT_EQ(OwnPluginName(22705), "STATIC_PLUGIN");
  EXPECT_EQ(OwnPluginName(0), "STATIC_PLUGIN") << "an unknown version is taken for a new one";
  EXPECT_NE(OwnPluginName(22105), "STATIC_PLUGIN") << "before 2.22 it opens a file";
}

// A process that has used NCCL starts another process. It inherits the variables of the first and has ranks
// of the same job.
TEST(PluginOffers, AProcessThatThisOneStartsFindsTheUsersPlugins) {
  const auto unset_all = [] {
    for (const char* variable : {"NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"}) {
      ::unsetenv(variable);
      ::unsetenv(KeptAs(variable).c_str());
    }
  };
  for (const std::string users : {"", "/site/libnccl-tuner-site.so"}) {
    unset_all();
    if (!users.empty()) ::setenv("NCCL_TUNER_PLUGIN", users.c_str(), 1);
    JobSettings settings = ReadJobSettings();
    settings.mode = Mode::kAdaptive;
    settings.times = Timed::kAll;
    PluginOffers offers(settings);
    offers.Offer();
    EXPECT_NE(::getenv("NCCL_TUNER_PLUGIN"), users);
    const JobSettings of_child = ReadJobSettings();
    EXPECT_EQ(of_child.tuner_plugin, users);
    EXPECT_EQ(PluginOfUser("NCCL_PROFILER_PLUGIN"), "");
    EXPECT_EQ(PinnedByUser(of_child), PinnedByUser(settings)) << "its ranks would not agree";
  }
  ::setenv("NCCL_TUNER_PLUGIN", "/other/libnccl-tuner-other.so", 1);
  EXPECT_EQ(PluginOfUser("NCCL_TUNER_PLUGIN"), "/other/libnccl-tuner-other.so") << "it was set anew";
  unset_all();
}

}  // namespace
}  // namespace dynamiccl
