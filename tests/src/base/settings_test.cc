// SPDX-License-Identifier: Apache-2.0
#include "src/base/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace dynamiccl {
namespace {

TEST(Settings, EveryRowIsNamedOnceAndSaysWhatItDoes) {
  std::set<std::string> names;
  for (const SettingRow& row : AllSettings()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GT(std::string(row.sentence).size(), 20u) << row.name;
    EXPECT_EQ(&Row(row.id), &row);
  }
}

TEST(Settings, ReadsTheEnvironmentOrTheDefault) {
  ::unsetenv("HOSTCCL_CHANNELS");
  EXPECT_EQ(IntegerSetting(Setting::kHostcclChannels).value(), 8);
  ::setenv("HOSTCCL_CHANNELS", "3", 1);
  EXPECT_EQ(IntegerSetting(Setting::kHostcclChannels).value(), 3);
  ::setenv("HOSTCCL_CHANNELS", "3x", 1);
  const auto wrong = IntegerSetting(Setting::kHostcclChannels);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("HOSTCCL_CHANNELS='3x'"), std::string::npos);
  ::unsetenv("HOSTCCL_CHANNELS");
}

TEST(Settings, TyposAreFoundWithTheNearestName) {
  const char* environment[] = {"PATH=/bin", "DYNAMICCL_MODUS=observe", "DYNAMICCL_MODE=off", nullptr};
  const auto unknown = UnknownSettings(environment);
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].name, "DYNAMICCL_MODUS");
  EXPECT_EQ(unknown[0].nearest, "DYNAMICCL_MODE");
}

TEST(Settings, PathsAreExpanded) {
  EXPECT_EQ(ExpandPath("a/%r.ctrace", 3), "a/3.ctrace");
  EXPECT_EQ(ExpandPath("100%", 3), "100%");
}

}  // namespace
}  // namespace dynamiccl
