// SPDX-License-Identifier: Apache-2.0
#include "src/transport/topology.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

constexpr const char* kGood = R"(version = 1
nodes = 2
ranks_per_node = 2
[link.intra]
latency_us = 1
bandwidth_gbps = 6.5
[link.inter]
latency_us = 30.5
bandwidth_gbps = 1
[[link.override]]
from = 0
to = 1
latency_us = 60
bandwidth_gbps = 0.5
)";

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseTopology(text, "t.toml");
  return parsed ? "" : parsed.error().message;
}

TEST(TopologyFile, ReadsEveryKey) {
  const auto topology = ParseTopology(kGood, "t.toml");
  ASSERT_TRUE(topology.has_value()) << topology.error().message;
  EXPECT_EQ(topology->nodes, 2);
  EXPECT_EQ(topology->ranks_per_node, 2);
  EXPECT_EQ(topology->Between(0, 0), (LinkParameters{1, 6.5}));
  EXPECT_EQ(topology->Between(1, 0), (LinkParameters{30.5, 1}));
  EXPECT_EQ(topology->Between(0, 1), (LinkParameters{60, 0.5}));
}

TEST(TopologyFile, AbsentLinksAreNotShaped) {
  const auto topology = ParseTopology("version = 1\nnodes = 3\n", "t.toml");
  ASSERT_TRUE(topology.has_value());
  EXPECT_FALSE(topology->Between(0, 1).has_value());
}

TEST(TopologyFile, ComplaintsNameThePlace) {
  EXPECT_EQ(ErrorOf("version = 1\nnodes = 2\nspeed = 3\n"), "t.toml: line 3, column 1: unknown key 'speed'");
  EXPECT_EQ(ErrorOf("version = 1\nnodes = 0\n"),
            "t.toml: line 2, column 9: 'nodes' must be an integer from 1 to 1024");
  EXPECT_NE(ErrorOf("version = 2\nnodes = 2\n").find("line 1, column 11"), std::string::npos);
  EXPECT_NE(ErrorOf("version = 1\n").find("key 'nodes' is missing"), std::string::npos);
  EXPECT_NE(
      ErrorOf("version = 1\nnodes = 2\n[link.inter]\nlatency_us = -1\nbandwidth_gbps = 1\n").find("line 4"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf("version = 1\nnodes = 2\n[link.inter]\nlatency_us = 1\nbandwidth_gbps = 0\n").find("line 5"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf("version = 1\nnodes = 2\n[link.inter]\nlatency_us = nan\nbandwidth_gbps = 1\n").find("line 4"),
      std::string::npos);
  EXPECT_NE(ErrorOf("version = 1\nnodes = \n").find("line 2"), std::string::npos);
  EXPECT_NE(ErrorOf("version = 1\nnodes = 2\n[[link.override]]\nfrom = 0\nto = 2\n").find("'to'"),
            std::string::npos);
}

// Cut anywhere, a file is an error or a valid shorter file, never a crash.
TEST(TopologyFile, SurvivesTruncationAtEachLength) {
  const std::string text = kGood;
  for (size_t length = 0; length < text.size(); ++length) {
    const auto parsed = ParseTopology(text.substr(0, length), "t.toml");
    const std::string message = parsed ? "t.toml: line" : parsed.error().message;
    EXPECT_NE(message.find("t.toml: line"), std::string::npos) << length;
  }
}

TEST(Topology, SpreadsRanksEvenlyWithoutRanksPerNode) {
  Topology topology;
  topology.nodes = 2;
  EXPECT_EQ(*topology.NodesOfRanks(4), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(*topology.NodesOfRanks(3), (std::vector<int>{0, 0, 1}));
}

TEST(Topology, RefusesMoreRanksThanPlaces) {
  Topology topology;
  topology.nodes = 2;
  topology.ranks_per_node = 2;
  EXPECT_TRUE(topology.NodesOfRanks(4).has_value());
  EXPECT_FALSE(topology.NodesOfRanks(5).has_value());
}

TEST(TopologyPresets, AreFoundByName) {
  for (const TopologyPreset& preset : TopologyPresets()) EXPECT_TRUE(LoadTopology(preset.name).has_value());
  EXPECT_TRUE(LoadTopology("").has_value());
  const auto missing = LoadTopology("no-such-preset");
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().hint.find("two-nodes-ethernet"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl
