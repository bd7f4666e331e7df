// SPDX-License-Identifier: Apache-2.0
#include "tools/record/recorded_launch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tools/launch/temporary_folder.h"

namespace dynamiccl {
namespace {

TEST(RemoveParts, LeavesThePartsOfOtherOutputs) {
  const auto folder = TemporaryFolder::Create("parts");
  ASSERT_TRUE(folder);
  const auto of = [&](const std::string& output) {
    std::string part = PartPattern(folder->File(output));
    part.replace(part.find("%h"), 2, "node1.cluster");
    part.replace(part.find("%p"), 2, "4711");
    return part;
  };
  const std::string others[] = {of("run.2"), of("run~2"), of("ru"), folder->File("run.node.4711.part")};
  for (const std::string& path : others) std::ofstream(path) << "a part";
  std::ofstream(of("run")) << "a part";
  RemoveParts(folder->File("run"));
  EXPECT_FALSE(std::filesystem::exists(of("run")));
  for (const std::string& path : others) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

}  // namespace
}  // namespace dynamiccl
