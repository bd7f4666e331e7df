// SPDX-License-Identifier: Apache-2.0
#include "src/cost_model/tuner_constants.h"

#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

CostModelInput RandomInput(std::mt19937_64& random) {
  std::uniform_real_distribution<double> value(0, 1000);
  CostModelInput input;
  input.fabric.n_ranks = static_cast<int32_t>(2 + random() % 1000);
  input.fabric.n_nodes = 1 + static_cast<int32_t>(random() % 100) % input.fabric.n_ranks;
  input.fabric.max_channels = static_cast<int32_t>(1 + random() % 64);
  input.fabric.intra = {value(random), value(random)};
  input.fabric.inter = {value(random), value(random)};
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      input.constants.base_latency_us[a][p] = value(random);
      input.constants.intra_latency_us[a][p] = value(random);
      input.constants.inter_latency_us[a][p] = value(random);
    }
  }
  input.constants.ll_max_bandwidth = value(random);
  input.constants.ring_ll128_channel_bandwidth = value(random);
  input.constants.tree_ll128_channel_bandwidth = value(random);
  input.constants.tree_channel_bandwidth = value(random);
  input.gpu_corrections = random() % 2 == 0;
  return input;
}

TEST(TunerConstants, RoundTripIsExact) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const CostModelInput input = RandomInput(random);
    const ncclTunerConstants_v5_t constants = ToTunerConstants(input);
    ASSERT_TRUE(CarriesFabric(constants));
    ASSERT_EQ(FromTunerConstants(constants, input.fabric.n_ranks, input.fabric.n_nodes), input);
  }
}

// Returns NVIDIA's constants. Their rows differ by compute capability.
ncclTunerConstants_v5_t NvidiaLike() {
  ncclTunerConstants_v5_t constants = ToTunerConstants(
      {.fabric = {.n_ranks = 16, .n_nodes = 2, .max_channels = 16}, .constants = NcclHopperConstants(2)});
  constexpr double kLLMax[4][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
  constexpr double kTree[4][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
  for (int row = 0; row < 4; ++row) {
    for (int scale = 0; scale < 3; ++scale) {
      constants.llMaxBws[row][scale] = kLLMax[row][scale];
      constants.perChMaxTreeBws[row][scale] = kTree[row][scale];
    }
  }
  return constants;
}

TEST(TunerConstants, NvidiasRowsAreRecognisedAndReadAsHopper) {
  const ncclTunerConstants_v5_t constants = NvidiaLike();
  EXPECT_FALSE(CarriesFabric(constants));
  const CostModelInput input = FromTunerConstants(constants, 16, 2);
  EXPECT_EQ(input.constants.tree_channel_bandwidth, 41.4);
  EXPECT_EQ(input.constants.ll_max_bandwidth, 39);
  EXPECT_EQ(input.constants, NcclHopperConstants(2));
  EXPECT_GT(input.fabric.inter.bandwidth_gbps, 0);
  EXPECT_GT(input.fabric.max_channels, 0);
  EXPECT_EQ(FromTunerConstants(constants, 8, 1).constants.ll_max_bandwidth, 141);
}

TEST(TunerConstants, WithoutThemTheSameFabricIsAssumedAsForNvidiasOwn) {
  const CostModelInput assumed = AssumedCostModel(16, 2);
  EXPECT_EQ(assumed.constants, NcclHopperConstants(2));
  EXPECT_EQ(assumed.fabric.max_channels, 16);
  EXPECT_EQ(assumed.fabric.n_ranks, 16);
  EXPECT_EQ(assumed.fabric.inter.bandwidth_gbps, 8 * 48);
  EXPECT_EQ(assumed.fabric.intra.latency_us, NcclHopperConstants(2).intra_latency_us[1][0]);
}

// NCCL never passes such numbers. A division by zero nodes would end the job.
TEST(TunerConstants, RanksAndNodesThatCannotBeAreTheNearestThatCan) {
  std::mt19937_64 random(2);
  for (const int n_ranks : {-5, 0, 1, 8}) {
    for (const int n_nodes : {-5, 0, 1, 2, 100}) {
      for (const CostModelInput& input :
           {AssumedCostModel(n_ranks, n_nodes), FromTunerConstants(NvidiaLike(), n_ranks, n_nodes),
            FromTunerConstants(ToTunerConstants(RandomInput(random)), n_ranks, n_nodes)}) {
        EXPECT_GE(input.fabric.n_nodes, 1);
        EXPECT_GE(input.fabric.n_ranks, input.fabric.n_nodes);
      }
    }
  }
}

}  // namespace
}  // namespace dynamiccl
