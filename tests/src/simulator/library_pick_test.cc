// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/library_pick.h"

#include <gtest/gtest.h>

#include "src/simulator/closed_form.h"

namespace dynamiccl {
namespace {

System Cluster() {
  System system{.name = "c", .source = "c", .ranks_per_node = 8, .max_channels = 16};
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple})
      system.path(algorithm, protocol) = {10, 2, 20, 300, 45, 0};
  }
  return system;
}

TEST(LibraryPick, IsWhatTheCostModelSaysOfTheLinks) {
  const System system = Cluster();
  for (const int nodes : {1, 2, 4, 16}) {
    for (uint64_t bytes = 8; bytes <= (uint64_t{1} << 32); bytes *= 2) {
      const CostModelInput view = LibraryView(system, 8 * nodes, nodes);
      const CollectiveConfig pick = LibraryPick(system, Collective::kAllReduce, bytes, 8 * nodes, nodes);
      ASSERT_FALSE(pick.leaves_nccl_alone());
      EXPECT_GE(pick.channels, 1);
      const double picked =
          EstimateCost(view, Collective::kAllReduce, bytes, {pick.algorithm, pick.protocol});
      for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
        for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
          const double cost = EstimateCost(view, Collective::kAllReduce, bytes, {algorithm, protocol});
          EXPECT_LE(picked, cost * (1 + 1e-6));
        }
      }
    }
  }
}

// NCCL chooses without looking at the machine's measured times, and it pays for that with slower calls.
TEST(LibraryPick, DoesNotSeeWhatWasMeasured) {
  System slow_tree = Cluster();
  for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple})
    slow_tree.path(Algorithm::kTree, protocol).inter_hop_us = 5000;
  slow_tree.residuals.push_back({.n_ranks = 128, .bytes = 1024, .log_factor = 3});
  bool paid = false;
  for (uint64_t bytes = 8; bytes <= (1 << 30); bytes *= 2) {
    const CollectiveConfig pick = LibraryPick(slow_tree, Collective::kAllReduce, bytes, 128, 16);
    EXPECT_EQ(pick, LibraryPick(Cluster(), Collective::kAllReduce, bytes, 128, 16));
    const CollectiveTimes times(slow_tree, 128);
    const CollectiveConfig best = times.Cheapest(Collective::kAllReduce, bytes);
    const double cost = times.Microseconds(Collective::kAllReduce, bytes, {pick.algorithm, pick.protocol});
    EXPECT_GE(cost, times.Microseconds(Collective::kAllReduce, bytes, best));
    paid = paid || cost > 1.5 * times.Microseconds(Collective::kAllReduce, bytes, best);
  }
  EXPECT_TRUE(paid);
}

TEST(LibraryPick, OnlyWhatTheSystemKnowsAndTheCollectiveHas) {
  System ring_only{.name = "r", .source = "r", .ranks_per_node = 4, .max_channels = 4};
  ring_only.path(Algorithm::kRing, Protocol::kLL) = {1, 1, 1, 10, 5, 0};
  for (uint64_t bytes = 8; bytes <= (1 << 30); bytes *= 4) {
    const CollectiveConfig pick = LibraryPick(ring_only, Collective::kAllGather, bytes, 16, 4);
    EXPECT_EQ(pick.algorithm, Algorithm::kRing);
    EXPECT_EQ(pick.protocol, Protocol::kLL);
  }
  EXPECT_TRUE(LibraryPick(ring_only, Collective::kAllReduce, 8, 1, 1).leaves_nccl_alone());
  EXPECT_TRUE(LibraryPick(ring_only, Collective::kSend, 8, 4, 1).leaves_nccl_alone());
  EXPECT_TRUE(LibraryPick(System{}, Collective::kAllReduce, 8, 4, 4).leaves_nccl_alone());
}

}  // namespace
}  // namespace dynamiccl
