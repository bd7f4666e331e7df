// SPDX-License-Identifier: Apache-2.0
#include "src/policy/config_features.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamiccl {
namespace {

CostModelInput TwoNodes() {
  CostModelInput input;
  input.fabric = {4, 2, 8, {1.5, 20}, {12, 2.5}};
  input.constants = NcclHopperConstants(2);
  return input;
}

ConfigQuestion AllReduceOf(uint64_t bytes) {
  return {Collective::kAllReduce, bytes, NcclConfigs(Collective::kAllReduce)};
}

double Value(const ConfigInputs& inputs, ConfigFeature feature) {
  return inputs[static_cast<size_t>(feature)] / 4096.0;
}

TEST(ConfigFeatures, ContextIsTheCallAndTheFabric) {
  const ConfigContext context(TwoNodes(), AllReduceOf(3 << 20));
  const ConfigInputs& f = context.features();
  EXPECT_EQ(Value(f, ConfigFeature::kIsAllReduce), 1);
  EXPECT_EQ(Value(f, ConfigFeature::kIsAllGather), 0);
  EXPECT_NEAR(Value(f, ConfigFeature::kBytes), std::log2(3 << 20) / 8, 1e-3)
      << "the fraction of the octave is kept";
  EXPECT_NEAR(Value(f, ConfigFeature::kRanks), 0.5, 1e-3);
  EXPECT_NEAR(Value(f, ConfigFeature::kNodes), 0.25, 1e-3);
  EXPECT_NEAR(Value(f, ConfigFeature::kInterLatency), std::log2(12000) / 8, 1e-3);
  EXPECT_NEAR(Value(f, ConfigFeature::kIntraBandwidth), std::log2(20000) / 8, 1e-3);
}

TEST(ConfigFeatures, LinksBetweenNodesDoNotCountOnOneNode) {
  CostModelInput input = TwoNodes();
  input.fabric.n_nodes = 1;
  const ConfigContext a(input, AllReduceOf(4096));
  input.fabric.inter = {1000, 0.1};
  const ConfigContext b(input, AllReduceOf(4096));
  EXPECT_EQ(a.features(), b.features());
}

TEST(ConfigFeatures, ActionsAreThoseAllowedAndPriced) {
  ConfigQuestion question = AllReduceOf(1 << 20);
  const ConfigContext context(TwoNodes(), question);
  const auto actions = context.Actions();
  ASSERT_FALSE(actions.empty());
  for (const ConfigAction& action : actions) {
    EXPECT_TRUE(question.allowed[ConfigIndex(action.config.algorithm, action.config.protocol)]);
    EXPECT_GT(action.prior, 0);
    EXPECT_LE(action.config.channels, 8);
  }
  question.allowed.reset();
  EXPECT_TRUE(ConfigContext(TwoNodes(), question).Actions().empty());
  EXPECT_TRUE(ConfigContext(TwoNodes(), question).default_config().leaves_nccl_alone());
}

TEST(ConfigFeatures, PriorIsTheCostModelsEstimate) {
  const CostModelInput input = TwoNodes();
  const ConfigContext context(input, AllReduceOf(1 << 20));
  for (const ConfigAction& action : context.Actions()) {
    const double cost = EstimateCost(input, Collective::kAllReduce, 1 << 20, action.config);
    EXPECT_NEAR(action.prior / 65536.0, std::log2(cost * 1e6), 1e-3);
    const ConfigInputs inputs = context.Features(action);
    EXPECT_NEAR(Value(inputs, ConfigFeature::kPrior), std::log2(cost * 1e6 / 1024) / 8, 2e-3);
    EXPECT_NEAR(Value(inputs, ConfigFeature::kChannels), std::log2(action.config.channels) / 4, 1e-3);
  }
}

TEST(ConfigFeatures, StayWithinTheirLimits) {
  CostModelInput input = TwoNodes();
  for (const double factor : {1e-9, 1.0, 1e12}) {
    input.fabric.inter = {12 * factor, 2.5 * factor};
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
      const ConfigContext context(input, AllReduceOf(bytes));
      for (const ConfigAction& action : context.Actions()) {
        const ConfigInputs inputs = context.Features(action);
        for (size_t i = 0; i < kConfigFeatures; ++i) ASSERT_LE(std::abs(inputs[i]), kConfigLimits[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace dynamiccl
