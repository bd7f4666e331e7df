// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/transport/emulated_links.h"
#include "src/transport/shaped_link.h"

namespace dynamiccl {
namespace {

constexpr int64_t kMs = 1'000'000;

// A link with its own state. Its clock began at 0.
struct LoneLink {
  explicit LoneLink(const LinkShape& shape, std::vector<LinkEvent> events = {})
      : link(LinkTimeline(shape, std::move(events)), 7, &state, &clock) {}

  LinkState state{};
  JobClock clock{};
  ShapedLink link;
};

LinkChange Change(size_t field, double value) {
  LinkChange change;
  change.Set(field, value);
  return change;
}

size_t FieldNamed(const std::string& name) {
  size_t i = 0;
  while (i < kLinkFields && name != LinkFieldTable()[i].name) ++i;
  return i;
}

TEST(ShapedLink, ArrivalIsTransferPlusLatency) {
  LoneLink lone({.latency_us = 30, .bandwidth_gbps = 1.5});
  EXPECT_EQ(lone.link.Schedule(1'000'000, 0), 1'000'000 + 30'000);
  EXPECT_EQ(lone.link.Schedule(2'000'000, 1'500'000), 2'000'000 + 1'000'000 + 30'000);
}

TEST(ShapedLink, MessagesOfAllSendersQueueBehindEachOther) {
  LoneLink one({.latency_us = 10, .bandwidth_gbps = 1});
  ShapedLink other(LinkTimeline({.latency_us = 10, .bandwidth_gbps = 1}, {}), 7, &one.state, &one.clock);
  EXPECT_EQ(one.link.Schedule(0, 1000), 1000 + 10'000);
  EXPECT_EQ(other.Schedule(0, 1000), 2000 + 10'000);
  EXPECT_EQ(one.link.Schedule(5000, 1000), 6000 + 10'000);
}

TEST(ShapedLink, PiecesOfAMessageTakeAsLongAsTheWhole) {
  LoneLink pieces({.latency_us = 20, .bandwidth_gbps = 5});
  LoneLink whole({.latency_us = 20, .bandwidth_gbps = 5});
  int64_t arrival = 0;
  for (int piece = 0; piece < 512; ++piece) arrival = pieces.link.Schedule(piece, 128 << 10);
  EXPECT_NEAR(static_cast<double>(arrival), static_cast<double>(whole.link.Schedule(0, 64 << 20)), 512);
}

TEST(ShapedLink, HealthActsOnBandwidthAndLatency) {
  LoneLink lone({.latency_us = 30, .bandwidth_gbps = 2, .degrade = 0.25});
  EXPECT_EQ(lone.link.Schedule(0, 1000), 2000 + 120'000);
}

TEST(ShapedLink, SteadyLoadLeavesTheRest) {
  LoneLink lone({.latency_us = 0, .bandwidth_gbps = 1, .load = 0.75});
  EXPECT_EQ(lone.link.Schedule(0, 1000), 4000);
}

// Over many cycles the link carries the mean rate, wherever the bursts lie. Within a pause it is free.
TEST(ShapedLink, BurstyLoadTakesItsMeanShare) {
  const LinkShape shape{.bandwidth_gbps = 1, .load = 0.9, .burst_on_ms = 2, .burst_off_ms = 6};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    // This is work for 100 cycles of 6.2 ms each.
    const int64_t time = TransferNs(shape, seed, 0, 620'000'000);
    EXPECT_EQ(time, 100 * 8 * kMs) << seed;
  }
}

// Data in pieces take as long as in one message, because the rate depends only on time.
TEST(ShapedLink, BurstsDoNotDependOnTheSizeOfPieces) {
  const LinkShape shape{.bandwidth_gbps = 1, .load = 0.8, .burst_on_ms = 1, .burst_off_ms = 1.5};
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    const uint64_t seed = random();
    const auto start = static_cast<int64_t>(random() % (50 * kMs));
    int64_t now = start;
    size_t sum = 0;
    for (int piece = 0; piece < 30; ++piece) {
      const size_t bytes = random() % 400'000;
      sum += bytes;
      now += TransferNs(shape, seed, now, bytes);
    }
    ASSERT_NEAR(static_cast<double>(now - start), static_cast<double>(TransferNs(shape, seed, start, sum)),
                60)
        << "round " << round;
    ASSERT_GE(now - start, static_cast<int64_t>(sum));
    ASSERT_LE(now - start, static_cast<int64_t>(sum) * 5 + 60);
  }
}

TEST(ShapedLink, JitterHasItsMeanAndIsRepeatable) {
  const LinkShape shape{.jitter_us = 50};
  double sum = 0;
  int64_t most = 0;
  for (uint64_t message = 0; message < 20'000; ++message) {
    const int64_t jitter = JitterNs(shape, 3, message);
    ASSERT_GE(jitter, 0);
    ASSERT_EQ(jitter, JitterNs(shape, 3, message));
    most = std::max(most, jitter);
    sum += static_cast<double>(jitter);
  }
  EXPECT_NEAR(sum / 20'000, 50'000, 1500);
  EXPECT_LE(most, 500'000);
  EXPECT_NE(JitterNs(shape, 3, 5), JitterNs(shape, 4, 5)) << "another link, another delay";
  LoneLink lone(shape);
  EXPECT_EQ(lone.link.Schedule(0, 0), JitterNs(shape, 7, 0));
  EXPECT_EQ(lone.link.Schedule(0, 0), JitterNs(shape, 7, 1));
}

TEST(ShapedLink, AnOrderHoldsFromTheNextMessageUntilItsEnd) {
  LoneLink lone({.latency_us = 10, .bandwidth_gbps = 1});
  EXPECT_EQ(lone.link.Schedule(0, 0), 10'000);
  lone.state.ordered.Write({Change(FieldNamed("latency_us"), 500), 9 * kMs});
  EXPECT_EQ(lone.link.Schedule(kMs, 0), kMs + 500'000);
  EXPECT_EQ(lone.link.Schedule(9 * kMs - 1, 0), 9 * kMs - 1 + 500'000);
  EXPECT_EQ(lone.link.Schedule(9 * kMs, 0), 9 * kMs + 10'000);
  lone.state.ordered.Write({Change(FieldNamed("bandwidth_gbps"), 0.5), kNeverNs});
  EXPECT_EQ(lone.link.Schedule(20 * kMs, 1000), 20 * kMs + 2000 + 10'000);
  lone.state.ordered.Write({});
  EXPECT_EQ(lone.link.Schedule(30 * kMs, 1000), 30 * kMs + 1000 + 10'000);
}

TEST(ShapedLink, EventsComeAtTheirTimeAndCall) {
  const LinkChange slow = Change(FieldNamed("latency_us"), 100);
  const LinkChange slower = Change(FieldNamed("latency_us"), 200);
  LoneLink lone({.latency_us = 10}, {{.begin = 5 * kMs, .end = 7 * kMs, .change = slow},
                                     {.by_call = true, .begin = 3, .end = 4, .change = slower}});
  lone.clock.epoch_ns = 1000 * kMs;
  const auto latency = [&](int64_t at_ms) {
    return lone.link.Schedule((1000 + at_ms) * kMs, 0) - (1000 + at_ms) * kMs;
  };
  EXPECT_EQ(latency(0), 10'000);
  EXPECT_EQ(latency(5), 100'000);
  lone.clock.calls = 3;
  EXPECT_EQ(latency(6), 200'000) << "the later event of the file wins";
  lone.clock.calls = 4;
  EXPECT_EQ(latency(6), 100'000);
  EXPECT_EQ(latency(7), 10'000);
  lone.state.ordered.Write({Change(FieldNamed("latency_us"), 1), kNeverNs});
  lone.clock.calls = 3;
  EXPECT_EQ(latency(8), 1000) << "an order wins over events";
}

// An order is ignored if its writer died while writing it. The order that was read before stays in force.
TEST(OrderedChange, AnUnfinishedOrderIsNotTaken) {
  OrderedChange ordered{};
  ordered.Write({Change(0, 5), kNeverNs});
  EXPECT_EQ(ordered.version() % 2, 0u);
  const auto order = ordered.Read();
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->change, Change(0, 5));
  EXPECT_EQ(order->until_ns, kNeverNs);
  // The version is the last word. While it is odd, a writer is in the middle of an order.
  auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(&ordered);
  ++words[2 + kLinkFields];
  EXPECT_FALSE(ordered.Read().has_value());
  ordered.Write({Change(0, 6), kNeverNs});
  EXPECT_EQ(ordered.Read()->change, Change(0, 6)) << "the next writer goes on";
}

TEST(LinkTarget, AnyMeansBetweenNodes) {
  EXPECT_TRUE(LinkTarget{}.Fits(0, 1, 0));
  EXPECT_FALSE(LinkTarget{}.Fits(1, 1, 0)) << "the inside of a node must be named";
  EXPECT_TRUE((LinkTarget{.from = 1, .to = 1}.Fits(1, 1, 0)));
  EXPECT_TRUE((LinkTarget{.from = 1}.Fits(1, 3, 0)));
  EXPECT_FALSE((LinkTarget{.from = 1}.Fits(3, 1, 0)));
  EXPECT_TRUE((LinkTarget{.from = 1, .both = true}.Fits(3, 1, 0)));
  EXPECT_FALSE((LinkTarget{.from = 1, .to = 3, .rail = 1}.Fits(1, 3, 0)));
}

std::shared_ptr<Segment> States(int n_ranks) {
  auto segment = Segment::Create(n_ranks);
  EXPECT_TRUE(segment.has_value());
  return *segment;
}

TEST(EmulatedLinks, RanksOfANodeShareTheLinkToAnotherNode) {
  Topology topology;
  topology.nodes = 2;
  topology.intra = LinkShape{1, 10};
  topology.inter = LinkShape{50, 1};
  const EmulatedLinks links(topology, {0, 0, 1, 1}, States(4));
  EXPECT_EQ(links.Link(0, 2, 0)->Schedule(0, 1000), 51'000);
  EXPECT_EQ(links.Link(1, 3, 1)->Schedule(0, 1000), 52'000);
  EXPECT_EQ(links.Link(2, 0, 0)->Schedule(0, 1000), 51'000) << "the other direction is free";
  EXPECT_EQ(links.Link(0, 1, 0)->Schedule(0, 1000), 1'100);
  EXPECT_EQ(links.Link(1, 0, 0)->Schedule(0, 1000), 1'100);
  EXPECT_EQ(links.Link(1, 1, 0), nullptr);
}

TEST(EmulatedLinks, AChannelUsesTheRailOfItsNumber) {
  Topology topology;
  topology.nodes = 2;
  topology.rails = 3;
  topology.inter = LinkShape{0, 1};
  topology.overrides.push_back({{.rail = 1}, Change(FieldNamed("degrade"), 0.5)});
  const EmulatedLinks links(topology, {0, 1}, States(2));
  EXPECT_EQ(links.Link(0, 1, 0)->Schedule(0, 1000), 1000);
  EXPECT_EQ(links.Link(0, 1, 3)->Schedule(0, 1000), 2000) << "rail 0 again";
  EXPECT_EQ(links.Link(0, 1, 4)->Schedule(0, 1000), 2000) << "rail 1, half as fast";
  EXPECT_EQ(links.Link(0, 1, 2)->Schedule(0, 1000), 1000);
}

TEST(EmulatedLinks, FabricNamesTheSlowestNominalLinkOfEachClass) {
  Topology topology;
  topology.nodes = 3;
  topology.inter = LinkShape{.latency_us = 50, .bandwidth_gbps = 1, .load = 0.5};
  LinkChange longer = Change(FieldNamed("latency_us"), 70);
  longer.Set(FieldNamed("degrade"), 0.1);
  topology.overrides.push_back({{.from = 0, .to = 2}, longer});
  const EmulatedLinks links(topology, {0, 1, 2}, nullptr);
  EXPECT_EQ(links.FabricOf({0, 1, 2}, 4), (Fabric{3, 3, 4, kUnshapedLink, {70, 1}}));
  EXPECT_EQ(links.FabricOf({1, 2}, 4), (Fabric{2, 2, 4, kUnshapedLink, {50, 1}}));
  EXPECT_EQ(links.FabricOf({1}, 4).n_nodes, 1);
  topology.rails = 4;
  EXPECT_EQ(EmulatedLinks(topology, {0, 1, 2}, nullptr).FabricOf({1, 2}, 4).inter, (LinkParameters{50, 4}));
}

TEST(EmulatedLinks, WiresAreEachDirectionOfEachRailAndEachPairInside) {
  Topology topology;
  topology.nodes = 2;
  topology.rails = 2;
  topology.inter = LinkShape{50, 1};
  topology.intra = LinkShape{20, 5};
  const EmulatedLinks links(topology, {0, 0, 0, 1}, States(4));
  int between = 0;
  int inside = 0;
  links.ForEachWire([&](EmulatedLinks::Wire& wire) {
    (wire.from_node == wire.to_node ? inside : between) += 1;
    EXPECT_EQ(wire.link.ShapeAt(0).latency_us, wire.from_node == wire.to_node ? 20 : 50);
    wire.state->ordered.Write({Change(0, 1), kNeverNs});
  });
  EXPECT_EQ(between, 4);
  EXPECT_EQ(inside, 6);
  const int64_t now = links.clock().epoch_ns;
  EXPECT_EQ(links.Link(0, 3, 1)->Schedule(now, 0), now + 1000);
  EXPECT_EQ(links.Link(2, 1, 0)->Schedule(now, 0), now + 1000);
}

TEST(EmulatedLinks, TheClockCountsTheFarthestCall) {
  const EmulatedLinks links({}, {0, 0}, States(2));
  links.NoteCall(2);
  links.NoteCall(1);
  EXPECT_EQ(links.clock().calls, 2);
  EXPECT_GT(links.clock().epoch_ns, 0);
}

}  // namespace
}  // namespace dynamiccl
