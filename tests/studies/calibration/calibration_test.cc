// SPDX-License-Identifier: Apache-2.0
// Tests with sweeps that are made from known constants. The calibrations must find these constants.
#include <gtest/gtest.h>

#include <cmath>

#include "src/collective/size_class.h"
#include "src/decision/override_rules.h"
#include "studies/calibration/choice_map.h"
#include "studies/calibration/fitted_model.h"
#include "studies/calibration/two_point.h"

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

// Adds the times of all configs at all sizes as `model` predicts them. The library's default is Ring/LL on
// one channel.
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

// Returns the rules' config for a call. It leaves the call to NCCL if no rule matches.
CollectiveConfig ByRules(const OverrideRules& rules, Collective collective, uint64_t bytes) {
  const OverrideRule* const rule = rules.Match({.collective = collective, .bytes = bytes, .n_ranks = 2});
  return rule == nullptr ? kLeaveNcclAlone : rule->config;
}

TEST(RulesOfModel, SayWhatTheModelPicksAtEverySize) {
  MeasurementFile file;
  AddRows(file, "pair", Model(2));
  const FittedModel model = FitModels(file).at(0);
  const auto rules = OverrideRules::Parse(RulesOfModel(file, model), "calibrated.csv");
  ASSERT_TRUE(rules.has_value()) << Describe(rules.error());
  ConfigMask measured;
  for (const Measurement& row : file.rows)
    measured.set(ConfigIndex(row.config.algorithm, row.config.protocol));
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather}) {
    for (uint8_t index = SizeClassOf(256).index; index <= SizeClassOf(1 << 30).index; ++index) {
      const uint64_t bytes = LowerBound({index});
      const CollectiveConfig expected =
          ModelsChoice(model.context.model, collective, bytes, measured & NcclConfigs(collective));
      EXPECT_EQ(ByRules(*rules, collective, bytes), expected) << Name(collective) << " of " << bytes;
    }
    EXPECT_EQ(ByRules(*rules, collective, 0), ByRules(*rules, collective, 256)) << "the ends are open";
    EXPECT_EQ(ByRules(*rules, collective, uint64_t{1} << 40), ByRules(*rules, collective, 1 << 30));
  }
  EXPECT_GT(rules->rules().size(), 2u) << "one choice for all sizes would be no model";
}

TEST(RulesOfModel, LeaveAloneWhatTheSweepDidNotMeasure) {
  MeasurementFile file;
  AddRows(file, "pair", Model(2));
  const std::string text = RulesOfModel(file, FitModels(file).at(0));
  EXPECT_EQ(text.find("broadcast"), std::string::npos);
  EXPECT_EQ(text.find("pat"), std::string::npos);
  file.rows.clear();
  const auto none = OverrideRules::Parse(RulesOfModel(file, {.context = file.contexts[0]}), "none.csv");
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->rules().empty());
}

}  // namespace
}  // namespace dynamiccl
