// SPDX-License-Identifier: Apache-2.0
// Compares prices with step counts from rings and trees that the test builds and walks itself.
#include "src/simulator/closed_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

constexpr PathCosts kUnitHops{.base_us = 0, .intra_hop_us = 1, .inter_hop_us = 1000, .intra_gbps = 1e9};

System WithPath(Algorithm algorithm, Protocol protocol, const PathCosts& costs, int ranks_per_node) {
  System system{.name = "test", .source = "test", .ranks_per_node = ranks_per_node, .max_channels = 8};
  system.path(algorithm, protocol) = costs;
  return system;
}

// Counts the hops of a chunk that travels `rounds` times n - 1 steps around the ring of ranks in order.
// Returns the hops inside nodes plus 1000 times the hops across nodes.
double WalkRing(int n_ranks, int ranks_per_node, int rounds) {
  int inside = 0;
  int across = 0;
  for (int step = 0; step < n_ranks - 1; ++step) {
    const bool leaves = step / ranks_per_node != (step + 1) / ranks_per_node;
    (leaves ? across : inside) += rounds;
  }
  return inside + 1000.0 * across;
}

TEST(ClosedForm, RingCountsTheHopsOfAWalkAroundIt) {
  for (const int ranks_per_node : {1, 2, 4, 8}) {
    for (int nodes = 1; nodes <= 9; ++nodes) {
      const int n = nodes * ranks_per_node;
      if (n < 2) continue;
      const System system = WithPath(Algorithm::kRing, Protocol::kSimple, kUnitHops, ranks_per_node);
      const CollectiveTimes times(system, n);
      const CollectiveConfig ring{Algorithm::kRing, Protocol::kSimple, 0};
      EXPECT_NEAR(times.Microseconds(Collective::kAllReduce, 1, ring), WalkRing(n, ranks_per_node, 2), 1e-6);
      EXPECT_NEAR(times.Microseconds(Collective::kAllGather, 1, ring), WalkRing(n, ranks_per_node, 1), 1e-6);
      EXPECT_NEAR(times.Microseconds(Collective::kBroadcast, 1, ring), WalkRing(n, ranks_per_node, 1), 1e-6);
    }
  }
}

// Adds up the bytes that one rank sends in a ring all-reduce of `bytes`, chunk by chunk.
TEST(ClosedForm, RingSendsWhatTheChunksAddUpTo) {
  const int n = 6;
  const uint64_t bytes = 6 << 20;
  double sent = 0;
  for (int step = 0; step < 2 * (n - 1); ++step) sent += static_cast<double>(bytes) / n;
  const PathCosts costs{.intra_gbps = 5, .inter_gbps = 0};
  const System system = WithPath(Algorithm::kRing, Protocol::kSimple, costs, n);
  EXPECT_NEAR(CollectiveTimes(system, n).Microseconds(Collective::kAllReduce, bytes,
                                                      {Algorithm::kRing, Protocol::kSimple, 0}),
              sent / 5e3, 1e-6);
}

// Returns the depth of the deepest leaf of NCCL's binary tree, by walking from every node to the root. A
// node's parent has the node's lowest set bit moved up by one place, or cleared if that is beyond the last
// node.
int DepthOfTree(int nodes) {
  int deepest = 0;
  for (int node = 0; node < nodes; ++node) {
    int depth = 0;
    for (int at = node; at != 0; ++depth) {
      const int bit = at & -at;
      const int parent = (at ^ bit) | (bit << 1);
      at = parent >= nodes ? at ^ bit : parent;
    }
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

TEST(ClosedForm, TreeIsAsDeepAsNcclsTreeForPowersOfTwoAndNoFartherThanAHopElsewhere) {
  for (int nodes = 2; nodes <= 300; ++nodes) {
    const System system = WithPath(Algorithm::kTree, Protocol::kLL, kUnitHops, 4);
    const double time = CollectiveTimes(system, 4 * nodes)
                            .Microseconds(Collective::kAllReduce, 1, {Algorithm::kTree, Protocol::kLL, 0});
    EXPECT_NEAR(std::fmod(time, 1000), 2 * 3, 1e-3);
    const int across = static_cast<int>(time / 2000);
    if ((nodes & (nodes - 1)) == 0) {
      EXPECT_EQ(across, DepthOfTree(nodes)) << nodes;
    } else {
      EXPECT_LE(std::abs(across - DepthOfTree(nodes)), 1) << nodes;
    }
  }
}

TEST(ClosedForm, LinksBetweenNodesCountOnlyWhereThereAreSeveral) {
  const PathCosts costs{.intra_gbps = 100, .inter_gbps = 10};
  const System system = WithPath(Algorithm::kRing, Protocol::kSimple, costs, 4);
  const CollectiveConfig ring{Algorithm::kRing, Protocol::kSimple, 0};
  const double inside = CollectiveTimes(system, 4).Microseconds(Collective::kReduceScatter, 1 << 20, ring);
  const double across = CollectiveTimes(system, 4, 4).Microseconds(Collective::kReduceScatter, 1 << 20, ring);
  EXPECT_NEAR(across / inside, 10, 1e-9);
}

TEST(ClosedForm, ChannelsBoundTheBandwidth) {
  const PathCosts costs{.intra_gbps = 100, .channel_gbps = 20};
  const System system = WithPath(Algorithm::kRing, Protocol::kSimple, costs, 4);
  const CollectiveTimes times(system, 4);
  const auto at = [&](uint8_t channels) {
    return times.Microseconds(Collective::kAllReduce, 1 << 30,
                              {Algorithm::kRing, Protocol::kSimple, channels});
  };
  EXPECT_NEAR(at(1) / at(0), 5, 1e-6);
  EXPECT_NEAR(at(4) / at(0), 1.25, 1e-6);
  EXPECT_DOUBLE_EQ(at(5), at(0));
  EXPECT_DOUBLE_EQ(at(8), at(0));
}

TEST(ClosedForm, WhatIsNotKnownOrNotPossibleHasNoPrice) {
  System system = WithPath(Algorithm::kNvls, Protocol::kSimple, kUnitHops, 4);
  system.path(Algorithm::kPat, Protocol::kSimple) = kUnitHops;
  const CollectiveConfig nvls{Algorithm::kNvls, Protocol::kSimple, 0};
  const CollectiveConfig pat{Algorithm::kPat, Protocol::kSimple, 0};
  EXPECT_GT(CollectiveTimes(system, 4).Microseconds(Collective::kAllReduce, 1, nvls), 0);
  EXPECT_EQ(CollectiveTimes(system, 8).Microseconds(Collective::kAllReduce, 1, nvls), -1);
  EXPECT_EQ(CollectiveTimes(system, 4).Microseconds(Collective::kBroadcast, 1, nvls), -1);
  EXPECT_EQ(CollectiveTimes(system, 8).Microseconds(Collective::kAllGather, 1, pat), -1);
  EXPECT_GT(CollectiveTimes(system, 8, 8).Microseconds(Collective::kAllGather, 1, pat), 0);
  EXPECT_EQ(CollectiveTimes(system, 8, 8).Microseconds(Collective::kAllReduce, 1, pat), -1);
  EXPECT_EQ(
      CollectiveTimes(system, 4).Microseconds(Collective::kAllReduce, 1, {Algorithm::kRing, Protocol::kLL}),
      -1);
  EXPECT_EQ(CollectiveTimes(system, 4).Microseconds(Collective::kSend, 1, kLeaveNcclAlone), -1);
  EXPECT_EQ(CollectiveTimes(system, 1).Microseconds(Collective::kAllReduce, 1, nvls), 0);
  EXPECT_TRUE(CollectiveTimes(system, 8).Cheapest(Collective::kAllReduce, 1).leaves_nccl_alone());
}

TEST(ClosedForm, AnOpenChoiceIsTheCheapestPath) {
  System system =
      WithPath(Algorithm::kRing, Protocol::kSimple, {.base_us = 50, .intra_gbps = 100, .inter_gbps = 20}, 4);
  system.path(Algorithm::kTree, Protocol::kLL) = {.base_us = 5, .intra_gbps = 20, .inter_gbps = 5};
  const CollectiveTimes times(system, 16);
  for (uint64_t bytes = 8; bytes < (uint64_t{1} << 32); bytes *= 2) {
    const double ring =
        times.Microseconds(Collective::kAllReduce, bytes, {Algorithm::kRing, Protocol::kSimple});
    const double tree = times.Microseconds(Collective::kAllReduce, bytes, {Algorithm::kTree, Protocol::kLL});
    EXPECT_DOUBLE_EQ(times.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone),
                     std::min(ring, tree));
    EXPECT_EQ(times.Cheapest(Collective::kAllReduce, bytes).algorithm,
              tree <= ring ? Algorithm::kTree : Algorithm::kRing);
  }
}

TEST(ClosedForm, ResidualsMeetTheirPointsAndAreInterpolatedBetweenThem) {
  System system =
      WithPath(Algorithm::kRing, Protocol::kSimple, {.base_us = 10, .intra_gbps = 100, .inter_gbps = 20}, 4);
  const Collective all = Collective::kAllReduce;
  system.residuals = {{.collective = all, .n_ranks = 8, .bytes = 1024, .log_factor = 0.0},
                      {.collective = all, .n_ranks = 8, .bytes = 4096, .log_factor = 1.0},
                      {.collective = all, .n_ranks = 32, .bytes = 1024, .log_factor = 2.0},
                      {.collective = all, .n_ranks = 32, .bytes = 4096, .log_factor = 3.0}};
  System plain = system;
  plain.residuals.clear();
  const auto log_factor = [&](int ranks, uint64_t bytes) {
    return std::log(CollectiveTimes(system, ranks).Microseconds(all, bytes, kLeaveNcclAlone) /
                    CollectiveTimes(plain, ranks).Microseconds(all, bytes, kLeaveNcclAlone));
  };
  EXPECT_NEAR(log_factor(8, 4096), 1.0, 1e-6);
  EXPECT_NEAR(log_factor(8, 2048), 0.5, 1e-6);
  EXPECT_NEAR(log_factor(16, 1024), 1.0, 1e-6);
  EXPECT_NEAR(log_factor(16, 2048), 1.5, 1e-6);
  EXPECT_NEAR(log_factor(64, 1 << 20), 3.0, 1e-6);
  EXPECT_NEAR(log_factor(4, 8), 0.0, 1e-6);
  // Both points are one octave away, so each counts 0.5 (1 - 0.25) / (1 - 0.0625).
  system.residual_reach = 0.5;
  EXPECT_NEAR(log_factor(16, 1024), 0.4 * (0.0 + 2.0), 1e-6);
  EXPECT_NEAR(log_factor(64, 1 << 20), 1.5, 1e-6);
  EXPECT_NEAR(log_factor(32, 4096), 3.0, 1e-6);
  system.residual_reach = 0;
  EXPECT_NEAR(log_factor(16, 1024), 0, 1e-6);
  EXPECT_NEAR(log_factor(32, 4096), 3.0, 1e-6);
  system.residual_reach = 1;
  // 1024 bytes at 16 ranks correspond to 512 at 8 ranks and to 2048 at 32 ranks.
  system.drift_bytes_per_rank = 64;
  EXPECT_NEAR(log_factor(16, 1024), (0.0 + 2.5) / 2, 1e-6);
  EXPECT_NEAR(log_factor(32, 1024), 2.0, 1e-6);
  system.drift_bytes_per_rank = 65;
  EXPECT_NEAR(log_factor(16, 1024), 1.0, 1e-6);
  // A stated config does not use the factors of the library's own pick.
  EXPECT_DOUBLE_EQ(CollectiveTimes(system, 8).Microseconds(all, 4096, {Algorithm::kRing, Protocol::kSimple}),
                   CollectiveTimes(plain, 8).Microseconds(all, 4096, {Algorithm::kRing, Protocol::kSimple}));
}

TEST(ClosedForm, WithoutTheFormulasShareTimesBetweenRankCountsLieOnAStraightLine) {
  System system =
      WithPath(Algorithm::kRing, Protocol::kSimple, {.base_us = 3, .inter_hop_us = 7, .intra_gbps = 10}, 1);
  const Collective all = Collective::kAllReduce;
  for (const int ranks : {4, 64}) {
    system.residuals.push_back({.collective = all, .n_ranks = ranks, .bytes = 1 << 20, .log_factor = 0.3});
  }
  const auto time = [&](int ranks) {
    return std::log(CollectiveTimes(system, ranks).Microseconds(all, 1 << 20, kLeaveNcclAlone));
  };
  const double ends = time(4) + time(64);
  const double with_formulas = time(16);
  system.formula_share = 0;
  EXPECT_NEAR(time(4) + time(64), ends, 1e-6);
  EXPECT_NEAR(time(16), ends / 2, 1e-6);
  system.formula_share = 0.5;
  EXPECT_NEAR(time(16), (ends / 2 + with_formulas) / 2, 1e-6);
}

// Beyond the largest measured rank count, the line through the two largest times has its share, in
// logarithms. It fades by residual_reach and does not apply across the border of a node.
TEST(ClosedForm, BeyondTheMeasuredRankCountsTheLineHasItsShare) {
  System system =
      WithPath(Algorithm::kRing, Protocol::kSimple, {.base_us = 3, .inter_hop_us = 7, .intra_gbps = 10}, 1);
  const Collective all = Collective::kAllReduce;
  for (const auto& [ranks, factor] : {std::pair(4, 0.3), {16, 0.9}, {64, 0.1}}) {
    system.residuals.push_back({.collective = all, .n_ranks = ranks, .bytes = 1 << 20, .log_factor = factor});
  }
  const auto time = [&](int ranks) {
    return std::log(CollectiveTimes(system, ranks).Microseconds(all, 1 << 20, kLeaveNcclAlone));
  };
  const double line = time(64) + (time(64) - time(16)) / 2;  // This is at 128 ranks.
  const double formulas = time(128);
  system.line_share = 1;
  EXPECT_NEAR(time(128), line, 1e-6);
  EXPECT_NEAR(time(64), line - (time(64) - time(16)) / 2, 1e-6) << "measured times stay";
  system.line_share = 0.25;
  EXPECT_NEAR(time(128), 0.25 * line + 0.75 * formulas, 1e-6);
  const double below = time(2);
  system.line_share = 0;
  EXPECT_EQ(time(2), below) << "the line is for larger rank counts";
  system.residual_reach = 0.5;
  const double faded = time(128);
  system.line_share = 1;
  EXPECT_NEAR(time(128), 0.5 * line + 0.5 * faded, 1e-6);
  system.ranks_per_node = 16;
  System without = system;
  without.line_share = 0;
  std::erase_if(system.residuals, [](const Residual& residual) { return residual.n_ranks > 16; });
  std::erase_if(without.residuals, [](const Residual& residual) { return residual.n_ranks > 16; });
  EXPECT_EQ(CollectiveTimes(system, 32).Microseconds(all, 1 << 20, kLeaveNcclAlone),
            CollectiveTimes(without, 32).Microseconds(all, 1 << 20, kLeaveNcclAlone))
      << "times inside a node say nothing of the network";
}

// For random systems, precomputed prices must equal the formulas evaluated one by one, and they must grow
// with the size.
TEST(ClosedForm, ReadyPricesAreTheFormulas) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> log_uniform(-2, 5);
  for (int round = 0; round < 50; ++round) {
    System system{.name = "r", .source = "r", .ranks_per_node = 1 << (random() % 4), .max_channels = 16};
    for (auto& row : system.paths) {
      for (PathCosts& costs : row) {
        costs = {std::exp(log_uniform(random)), std::exp(log_uniform(random)), std::exp(log_uniform(random)),
                 std::exp(log_uniform(random)), std::exp(log_uniform(random)), std::exp(log_uniform(random))};
      }
    }
    const int n = 2 + static_cast<int>(random() % 500);
    const CollectiveTimes times(system, n);
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      const auto channels = static_cast<uint8_t>(random() % 17);
      const PathTerms terms = TermsOf(Collective::kAllReduce, Algorithm::kTree, n, system.NodesFor(n));
      double before = 0;
      for (uint64_t bytes = 1; bytes < (uint64_t{1} << 34); bytes = bytes * 2 + random() % 3) {
        const double time =
            times.Microseconds(Collective::kAllReduce, bytes, {Algorithm::kTree, protocol, channels});
        EXPECT_NEAR(time / FormulaTime(system, terms, system.path(Algorithm::kTree, protocol), n,
                                       system.NodesFor(n), bytes, channels),
                    1, 1e-9);
        EXPECT_GT(time, before);
        before = time;
      }
    }
  }
}

}  // namespace
}  // namespace dynamiccl
