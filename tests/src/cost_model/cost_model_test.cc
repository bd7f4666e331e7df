// SPDX-License-Identifier: Apache-2.0
#include "src/cost_model/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace dynamiccl {
namespace {

CostModelInput TwoNodes() {
  return {.fabric = {.n_ranks = 16,
                     .n_nodes = 2,
                     .max_channels = 16,
                     .intra = {.latency_us = 0.6, .bandwidth_gbps = 360},
                     .inter = {.latency_us = 2.7, .bandwidth_gbps = 48}},
          .constants = NcclHopperConstants(2)};
}

CostTable Filled(float value) {
  CostTable table;
  for (auto& row : table.microseconds) row.fill(value);
  return table;
}

TEST(CheapestConfig, TiesGoToTheLowestAlgorithmThenProtocol) {
  CostTable table = Filled(-1);
  table.microseconds[1][2] = table.microseconds[1][0] = table.microseconds[0][1] = 5;
  EXPECT_EQ(CheapestConfig(table), (CollectiveConfig{Algorithm::kTree, Protocol::kLL128, 0}));
}

TEST(CheapestConfig, NegativeAndNanEntriesAreNeverChosen) {
  CostTable table = Filled(-1);
  table.microseconds[0][0] = std::numeric_limits<float>::quiet_NaN();
  table.microseconds[1][0] = -0.5f;
  EXPECT_TRUE(CheapestConfig(table).leaves_nccl_alone());
  table.microseconds[6][2] = 1e30f;
  EXPECT_EQ(CheapestConfig(table).algorithm, Algorithm::kPat);
}

TEST(CheapestConfig, ZeroWins) {
  CostTable table = Filled(1);
  table.microseconds[1][2] = 0;
  EXPECT_EQ(CheapestConfig(table), (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 0}));
}

TEST(EstimateCosts, OnlyAllowedPairsArePriced) {
  ConfigMask allowed;
  allowed.set(ConfigIndex(Algorithm::kRing, Protocol::kLL));
  allowed.set(ConfigIndex(Algorithm::kTree, Protocol::kLL));
  const CostTable all_reduce = EstimateCosts(TwoNodes(), Collective::kAllReduce, 1024, 1, allowed);
  const CostTable gather = EstimateCosts(TwoNodes(), Collective::kAllGather, 1024, 1, allowed);
  int priced = 0;
  for (const auto& row : all_reduce.microseconds) {
    for (const float time : row) priced += time >= 0;
  }
  EXPECT_EQ(priced, 2);
  EXPECT_EQ(gather.at(Algorithm::kTree, Protocol::kLL), -1) << "Tree has no AllGather";
  EXPECT_GT(gather.at(Algorithm::kRing, Protocol::kLL), 0);
}

TEST(EstimateCosts, MoreBytesNeverCostLessExceptWhereTreeCorrectionRises) {
  const ConfigMask allowed = NcclConfigs(Collective::kReduceScatter);
  for (uint64_t bytes = 256; bytes < (uint64_t{1} << 32); bytes *= 2) {
    const CostTable small = EstimateCosts(TwoNodes(), Collective::kReduceScatter, bytes, 1, allowed);
    const CostTable large = EstimateCosts(TwoNodes(), Collective::kReduceScatter, bytes * 2, 1, allowed);
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      EXPECT_LT(small.at(Algorithm::kRing, protocol), large.at(Algorithm::kRing, protocol)) << bytes;
    }
  }
}

TEST(EstimateCost, AllChannelsEqualTheTable) {
  const CostModelInput input = TwoNodes();
  const CostTable table =
      EstimateCosts(input, Collective::kAllReduce, 1 << 20, 1, NcclConfigs(Collective::kAllReduce));
  const CollectiveConfig config{Algorithm::kRing, Protocol::kSimple, 0};
  const double estimate = EstimateCost(input, Collective::kAllReduce, 1 << 20, config);
  EXPECT_EQ(static_cast<float>(estimate), table.at(Algorithm::kRing, Protocol::kSimple));
  EXPECT_EQ(EstimateCost(input, Collective::kAllReduce, 1 << 20, kLeaveNcclAlone), -1);
}

TEST(EstimateCost, OneSlowChannelCostsMoreThanAll) {
  CostModelInput input = TwoNodes();
  input.constants.tree_channel_bandwidth = 1;
  CollectiveConfig config{Algorithm::kRing, Protocol::kSimple, 1};
  const double one = EstimateCost(input, Collective::kAllGather, 1 << 26, config);
  config.channels = 16;
  EXPECT_GT(one, EstimateCost(input, Collective::kAllGather, 1 << 26, config));
}

TEST(EstimateCost, WithoutGpuCorrectionsTheModelIsLinearInBytes) {
  CostModelInput input = TwoNodes();
  input.gpu_corrections = false;
  const CollectiveConfig config{Algorithm::kTree, Protocol::kSimple, 0};
  const auto cost = [&](uint64_t bytes) {
    return EstimateCost(input, Collective::kAllReduce, bytes, config);
  };
  EXPECT_NEAR(cost(3 << 20) - cost(2 << 20), cost(2 << 20) - cost(1 << 20), 1e-9);
  input.gpu_corrections = true;
  EXPECT_GT(std::abs((cost(3 << 20) - cost(2 << 20)) - (cost(2 << 20) - cost(1 << 20))), 1e-3);
}

TEST(DefaultChannels, FollowNcclsThresholds) {
  CostModelInput input = TwoNodes();
  input.fabric.n_ranks = 2;
  input.fabric.n_nodes = 1;
  const auto channels = [&](uint64_t bytes, Protocol protocol) {
    return DefaultChannels(input, Collective::kAllReduce, bytes, Algorithm::kRing, protocol);
  };
  // Ring/LL needs 512 threads x 8 bytes x ranks per channel. NCCL 2.30.7 chose these values for 2 ranks of an
  // H100 node.
  EXPECT_EQ(channels(256, Protocol::kLL), 1);
  EXPECT_EQ(channels(16384, Protocol::kLL), 2);
  EXPECT_EQ(channels(32768, Protocol::kLL), 4);
  EXPECT_EQ(channels(65536, Protocol::kLL), 8);
  EXPECT_EQ(channels(131072, Protocol::kLL), 16);
  EXPECT_EQ(channels(512 * 64 * 3, Protocol::kSimple), 3);
  EXPECT_EQ(channels(uint64_t{1} << 30, Protocol::kSimple), 16);
}

}  // namespace
}  // namespace dynamiccl
