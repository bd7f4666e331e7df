// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "src/transport/emulated_links.h"

namespace dynamiccl {
namespace {

TEST(ShapedLink, ArrivalIsTransferPlusLatency) {
  LinkState state{};
  const ShapedLink link(30, 1.5, &state);
  EXPECT_EQ(link.Schedule(1'000'000, 0), 1'000'000 + 30'000);
  EXPECT_EQ(link.Schedule(2'000'000, 1'500'000), 2'000'000 + 1'000'000 + 30'000);
}

TEST(ShapedLink, MessagesQueueBehindEachOther) {
  LinkState state{};
  const ShapedLink one(10, 1, &state);
  const ShapedLink other(10, 1, &state);
  EXPECT_EQ(one.Schedule(0, 1000), 1000 + 10'000);
  EXPECT_EQ(other.Schedule(0, 1000), 2000 + 10'000);
  EXPECT_EQ(one.Schedule(5000, 1000), 6000 + 10'000);
}

TEST(EmulatedLinks, RanksOfANodeShareTheLinkToAnotherNode) {
  Topology topology;
  topology.nodes = 2;
  topology.intra = LinkParameters{1, 10};
  topology.inter = LinkParameters{50, 1};
  auto segment = Segment::Create(4);
  ASSERT_TRUE(segment.has_value());
  const EmulatedLinks links(topology, {0, 0, 1, 1}, *segment);
  EXPECT_EQ(links.Link(0, 2)->Schedule(0, 1000), 51'000);
  EXPECT_EQ(links.Link(1, 3)->Schedule(0, 1000), 52'000);
  EXPECT_EQ(links.Link(2, 0)->Schedule(0, 1000), 51'000) << "the other direction is free";
  EXPECT_EQ(links.Link(0, 1)->Schedule(0, 1000), 1'100);
  EXPECT_EQ(links.Link(1, 0)->Schedule(0, 1000), 1'100);
  EXPECT_EQ(links.Link(1, 1), nullptr);
}

TEST(EmulatedLinks, FabricNamesTheSlowestLinkOfEachClass) {
  Topology topology;
  topology.nodes = 3;
  topology.inter = LinkParameters{50, 1};
  topology.overrides.push_back({0, 2, {70, 2}});
  const EmulatedLinks links(topology, {0, 1, 2}, nullptr);
  const Fabric all = links.FabricOf({0, 1, 2}, 4);
  EXPECT_EQ(all, (Fabric{3, 3, 4, kUnshapedLink, {70, 1}}));
  EXPECT_EQ(links.FabricOf({1, 2}, 4), (Fabric{2, 2, 4, kUnshapedLink, {50, 1}}));
  EXPECT_EQ(links.FabricOf({1}, 4).n_nodes, 1);
}

}  // namespace
}  // namespace dynamiccl
