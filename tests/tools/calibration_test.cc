// SPDX-License-Identifier: Apache-2.0
// Sweeps made from known constants: the calibrations must find them again.
#include <gtest/gtest.h>

#include <cmath>

#include "tools/calibration/choice_map.h"
#include "tools/calibration/two_point.h"

namespace dynamiccl {
namespace {

CostModelInput Model(int n_nodes) {
  CostModelInput model{.fabric = {.n_ranks = 2,
                                  .n_nodes = n_nodes,
                                  .max_channels = 4,
                                  .intra = {.latency_us = 0, .bandwidth_gbps = 8},
                                  .inter = {.latency_us = 30, .bandwidth_gbps = 2}},
                       .gpu_corrections = false};
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple}) {
      const auto a = static_cast<size_t>(algorithm);
      const auto p = static_cast<size_t>(protocol);
      const double hop = protocol == Protocol::kLL ? 2 : 5;
      model.constants.base_latency_us[a][p] = 3;
      model.constants.intra_latency_us[a][p] = hop;
      model.constants.inter_latency_us[a][p] = hop + 30;
    }
  }
  model.constants.ll_max_bandwidth = 1;
  model.constants.tree_channel_bandwidth = 4;
  return model;
}

// Every config at every size takes what `model` says; the library's default is Ring/LL on one channel.
void AddRows(MeasurementFile& file, const std::string& topology, const CostModelInput& model) {
  file.contexts.push_back({topology, model});
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather}) {
    for (const uint64_t bytes : {1024, 65536, 4 << 20}) {
      ConfigMask mask;
      for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
        for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple})
          mask.set(ConfigIndex(algorithm, protocol));
      }
      for (const CollectiveConfig& config : EnumerateConfigs(mask & NcclConfigs(collective), 4)) {
        const auto us = static_cast<float>(EstimateCost(model, collective, bytes, config));
        file.rows.push_back({topology, collective, bytes, config, false, {us, us, us, us}});
        if (config != CollectiveConfig{Algorithm::kRing, Protocol::kLL, 1}) continue;
        file.rows.push_back({topology, collective, bytes, config, true, {us, us, us, us}});
      }
    }
  }
}

TEST(TwoPointCosts, FindTheConstantsOfAnExactSweep) {
  MeasurementFile file;
  AddRows(file, "node", Model(1));
  AddRows(file, "pair", Model(2));
  const auto costs = TwoPointCosts(file);
  ASSERT_TRUE(costs.has_value());
  ASSERT_EQ(costs->size(), 8u) << "two topologies, two protocols, Ring and Tree";
  for (const SoftwareCost& cost : *costs) {
    EXPECT_NEAR(cost.base_us, 3, 0.05) << Name(cost.algorithm) << Name(cost.protocol) << cost.topology;
    EXPECT_NEAR(cost.hop_us, cost.protocol == Protocol::kLL ? 2 : 5, 0.05) << cost.topology;
  }
  EXPECT_NEAR(costs->at(0).bus_gbps, 1, 0.01) << "Ring/LL: its cap";
  EXPECT_NE(SourceLines(*costs).find("{Algorithm::kRing, Protocol::kLL, 3.00, 2.00}"), std::string::npos);
}

TEST(TwoPointCosts, RefuseASweepThatCannotSayThem) {
  MeasurementFile file;
  file.contexts.push_back({"node", Model(1)});
  EXPECT_FALSE(TwoPointCosts(file).has_value());
}

TEST(FitModels, FindAModelThatTimesAreFrom) {
  MeasurementFile file;
  AddRows(file, "pair", Model(2));
  CostModelInput& wrong = file.contexts[0].model;
  for (auto& row : wrong.constants.base_latency_us) {
    for (double& value : row) value *= 7;
  }
  wrong.constants.ll_max_bandwidth = 9;
  wrong.fabric.inter.bandwidth_gbps = 0.3;
  const std::vector<FittedModel> fitted = FitModels(file);
  ASSERT_EQ(fitted.size(), 1u);
  EXPECT_GT(fitted[0].error_before, 0.3);
  EXPECT_LT(fitted[0].error_after, 0.05);
}

TEST(ChoiceMap, ACalibratedDefaultOfTheTrueModelIsNeverMuchWorseThanTheBest) {
  MeasurementFile file;
  AddRows(file, "node", Model(1));
  AddRows(file, "pair", Model(2));
  const ChoiceMap map = MapChoices(file, FitModels(file));
  EXPECT_EQ(map.rows.size(), 12u);
  EXPECT_GT(map.winners, 1);
  EXPECT_GT(map.usual_share_13, 0.2) << "one channel of LL is a bad default for large messages";
  EXPECT_LE(map.calibrated_share_13, map.usual_share_13);
  EXPECT_NE(Markdown(map).find("12 cells"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl
