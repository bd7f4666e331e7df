// SPDX-License-Identifier: Apache-2.0
// Tests a regression of NCCL in 2.25.1 to 2.28.9 (NVIDIA/nccl#1946). It concerns Ampere GPUs whose adapters
// sit on different processors. The search finds no tree within its limits and uses only one adapter. Earlier
// and later releases use all adapters.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "tests/real_nccl/own_choices.h"
#include "tests/real_nccl/require_release.h"

namespace dynamiccl::real_nccl {
namespace {

const NcclWorld kWorld{"two_a800", 2, 2};

struct Expected {
  NcclRelease release;
  int channels;           // channels of the communicator
  double tree_gbps;       // of each channel of the tree between nodes
  const char* tree_path;  // the longest path between a GPU and its adapter
  std::set<int> tree_adapters;
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.release.text();
}

// Returns the adapters of the graph called `id` in a file of NCCL_GRAPH_DUMP_FILE.
std::set<int> AdaptersOfGraph(const std::string& path, const std::string& id) {
  static const std::regex kNet(R"re(<net dev="([^"]+)")re");
  std::set<int> adapters;
  std::ifstream file(path);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find("<graph ") != std::string::npos)
      inside = line.find(" id=\"" + id + "\"") != std::string::npos;
    std::smatch net;
    if (inside && std::regex_search(line, net, kNet))
      adapters.insert(std::stoi(net[1], nullptr, 0));  // written as "0" or "0x1"
  }
  return adapters;
}

class Upgrade : public testing::TestWithParam<Expected> {};

TEST_P(Upgrade, AdaptersOfTheTreeAreThoseThatTheReleaseIsKnownToUse) {
  const Expected& expected = GetParam();
  REAL_NCCL_REQUIRE_RELEASE(expected.release);
  const std::string scratch = testing::TempDir() + "/upgrade_" + expected.release.text();
  std::filesystem::create_directories(scratch);
  NcclChoices made;
  ASSERT_EQ(AddOwnChoices(expected.release, kWorld, {256 << 20}, scratch, &made), "");
  const NcclCommunicator& world = made.releases.at(expected.release.text()).worlds.at(kWorld);
  EXPECT_EQ(world.channels, expected.channels);
  const NcclGraph& tree = world.graphs.at(Algorithm::kTree);
  EXPECT_NEAR(tree.inter_gbps, expected.tree_gbps, 0.05);
  EXPECT_EQ(tree.inter_type, expected.tree_path);
  EXPECT_EQ(AdaptersOfGraph(scratch + "/graphs.xml", "1"), expected.tree_adapters);
  std::filesystem::remove_all(scratch);
}

INSTANTIATE_TEST_SUITE_P(Releases, Upgrade,
                         testing::Values(Expected{{2, 24, 3}, 4, 24, "SYS", {0, 1}},
                                         Expected{{2, 28, 9}, 2, 0.1, "SYS", {0}},
                                         Expected{{2, 32, 3}, 4, 24, "SYS", {0, 1}}),
                         [](const auto& test) {
                           return "Nccl2_" + std::to_string(test.param.release.minor);
                         });

}  // namespace
}  // namespace dynamiccl::real_nccl
