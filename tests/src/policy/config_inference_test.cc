// SPDX-License-Identifier: Apache-2.0
#include "src/policy/config_inference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

CostModelInput TwoNodes() {
  CostModelInput input;
  input.fabric = {4, 2, 8, {1.5, 20}, {12, 2.5}};
  input.constants = NcclHopperConstants(2);
  return input;
}

ConfigQuestion Question(Collective collective, uint64_t bytes) {
  return {collective, bytes, NcclConfigs(collective)};
}

TEST(ChooseConfig, TakesWhatAllNetworksPromise) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const ConfigChoice choice = ChooseConfig(*policy, TwoNodes(), Question(Collective::kAllReduce, 64));
  EXPECT_EQ(choice.reason, ChoiceReason::kPromised);
  EXPECT_EQ(choice.config.algorithm, Algorithm::kTree);
  EXPECT_EQ(choice.config.protocol, Protocol::kLL);
  EXPECT_GT(choice.predicted_microseconds(), 0);
}

TEST(ChooseConfig, LeavesNcclAloneWhereOneNetworkDoesNotPromise) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  policy->tensors.config_weights_3[1][0] = 0;
  // At 256 MB the cost model is far from Tree/LL, so the second network predicts no gain.
  const ConfigChoice choice = ChooseConfig(*policy, TwoNodes(), Question(Collective::kAllReduce, 256 << 20));
  EXPECT_EQ(choice.reason, ChoiceReason::kNoPromise);
  EXPECT_TRUE(choice.config.leaves_nccl_alone());
  EXPECT_EQ(choice.predicted_gain, 0);
}

// Adds one decision tree that adds `octaves` to the predicted time of Tree.
void AddTree(PolicyTensors& t, double octaves) {
  t.trees.count = 1;
  for (auto& node : t.tree_nodes[0]) node[1] = 32767;
  t.tree_nodes[0][0][0] = static_cast<int16_t>(ConfigFeature::kTree);
  t.tree_nodes[0][0][1] = 1;
  t.tree_leaves[0][kTreeLeaves / 2] = static_cast<int32_t>(octaves * 65536);
}

TEST(ChooseConfig, LeavesNcclAloneWhereTheTreesDoNotPromise) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const ConfigQuestion question = Question(Collective::kAllReduce, 64);
  AddTree(policy->tensors, -1);
  const ConfigChoice promised = ChooseConfig(*policy, TwoNodes(), question);
  EXPECT_EQ(promised.reason, ChoiceReason::kPromised);
  AddTree(policy->tensors, 4);
  EXPECT_FALSE(ChooseConfig(*policy, TwoNodes(), question).config.algorithm == Algorithm::kTree &&
               promised.default_config.algorithm != Algorithm::kTree);
  policy->tensors.trees.base =
      3 << 16;  // This is the same for every config. It changes the prediction, but not the choice.
  AddTree(policy->tensors, -1);
  const ConfigChoice shifted = ChooseConfig(*policy, TwoNodes(), question);
  EXPECT_EQ(shifted.config, promised.config);
  EXPECT_EQ(shifted.predicted_gain, promised.predicted_gain);
  // The trees count for half of the mean.
  EXPECT_EQ(shifted.predicted_log2 - promised.predicted_log2, 3 << 15);
}

TEST(ChooseConfig, GateIsThreePercentOverTheDefault) {
  // These networks predict nothing. The default is the model's cheapest config, so no action promises a gain.
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  for (auto& network : policy->tensors.config_weights_3) network[0] = 0;
  for (uint64_t bytes = 64; bytes < (1u << 30); bytes *= 4) {
    const ConfigChoice choice =
        ChooseConfig(*policy, TwoNodes(), Question(Collective::kReduceScatter, bytes));
    EXPECT_TRUE(choice.config.leaves_nccl_alone() || choice.predicted_gain >= policy->tensors.config.gate);
  }
}

TEST(ChooseConfig, OutsideTheTrainingsBoxNcclIsLeftAlone) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const ConfigQuestion question = Question(Collective::kAllReduce, 64);
  const ConfigInputs inside = ConfigContext(TwoNodes(), question).features();
  for (int feature = 0; feature < kContextFeatures; ++feature) {
    const auto narrowed = std::make_unique<Policy>(*policy);
    narrowed->tensors.domain_min[feature] = static_cast<int16_t>(inside[static_cast<size_t>(feature)] + 1);
    const ConfigChoice choice = ChooseConfig(*narrowed, TwoNodes(), question);
    EXPECT_EQ(choice.reason, ChoiceReason::kOutsideTraining) << feature;
    EXPECT_TRUE(choice.config.leaves_nccl_alone());
  }
}

TEST(ChooseConfig, NeverTakesAnActionThatTrainingNeverSaw) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  policy->tensors.domain_max[static_cast<size_t>(ConfigFeature::kTree)] = 0;
  const ConfigChoice choice = ChooseConfig(*policy, TwoNodes(), Question(Collective::kAllReduce, 256 << 20));
  EXPECT_NE(choice.config.algorithm, Algorithm::kTree);
}

TEST(ChooseConfig, NeverLeavesTheMask) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  ConfigQuestion question = Question(Collective::kAllReduce, 64);
  question.allowed.reset(ConfigIndex(Algorithm::kTree, Protocol::kLL));
  EXPECT_TRUE(ChooseConfig(*policy, TwoNodes(), question).config.leaves_nccl_alone());
  question.allowed.reset();
  EXPECT_EQ(ChooseConfig(*policy, TwoNodes(), question).reason, ChoiceReason::kNothingKnown);
  EXPECT_EQ(ChooseConfig(*policy, TwoNodes(), Question(Collective::kSend, 64)).reason,
            ChoiceReason::kNothingKnown);
}

TEST(ChooseConfig, IsAPureFunction) {
  const auto policy = test::MakeRandomPolicy(31);
  const auto copy = std::make_unique<Policy>(*policy);
  for (int collective = 0; collective < kTunableCollectives; ++collective) {
    for (uint64_t bytes = 1; bytes < (uint64_t{1} << 34); bytes = bytes * 3 + 1) {
      const ConfigQuestion question = Question(static_cast<Collective>(collective), bytes);
      const ConfigChoice a = ChooseConfig(*policy, TwoNodes(), question);
      const ConfigChoice b = ChooseConfig(*copy, TwoNodes(), question);
      ASSERT_EQ(a.config, b.config);
      ASSERT_EQ(a.predicted_log2, b.predicted_log2);
    }
  }
}

// Computes the same network in double precision.
double DoubleResidual(const PolicyTensors& t, int n, const ConfigInputs& inputs) {
  std::vector<double> first(kConfigHidden), second(kConfigHidden);
  const auto scale = [&](int layer) { return std::exp2(t.config.fraction_bits[layer]); };
  const auto relu = [](double v) { return std::clamp(v, 0.0, 2.0); };
  for (int r = 0; r < kConfigHidden; ++r) {
    double sum = t.config_bias_1[n][r] / scale(0) / 4096;
    for (int i = 0; i < kConfigInputs; ++i) sum += t.config_weights_1[n][r][i] / scale(0) * inputs[i] / 4096;
    first[r] = relu(sum);
  }
  for (int r = 0; r < kConfigHidden; ++r) {
    double sum = t.config_bias_2[n][r] / scale(1) / 8192;
    for (int i = 0; i < kConfigHidden; ++i) sum += t.config_weights_2[n][r][i] / scale(1) * first[i];
    second[r] = relu(sum);
  }
  double sum = t.config_bias_3[n] / scale(2) / 8192;
  for (int i = 0; i < kConfigHidden; ++i) sum += t.config_weights_3[n][i] / scale(2) * second[i];
  return sum;
}

TEST(PredictResiduals, FollowTheRealNetwork) {
  const auto policy = test::MakeRandomPolicy(32);
  const ConfigContext context(TwoNodes(), Question(Collective::kAllReduce, 5 << 20));
  for (const ConfigAction& action : context.Actions()) {
    const ConfigInputs inputs = context.Features(action);
    const Residuals residuals = PredictResiduals(policy->tensors, inputs);
    for (int n = 0; n < kEnsemble; ++n) {
      EXPECT_NEAR(residuals[static_cast<size_t>(n)] / 65536.0, DoubleResidual(policy->tensors, n, inputs),
                  0.02);
    }
  }
}

// Walks from each leaf upwards. A leaf is reached if every comparison on its path agrees.
int32_t TreeByItsLeaves(const PolicyTensors& t, int tree, const ConfigInputs& inputs) {
  for (int leaf = 0; leaf < kTreeLeaves; ++leaf) {
    bool reached = true;
    for (int node = kTreeNodes + leaf; node > 0; node = (node - 1) / 2) {
      const int16_t* split = t.tree_nodes[tree][(node - 1) / 2];
      reached = reached && (inputs[static_cast<size_t>(split[0])] < split[1]) == (node % 2 == 1);
    }
    if (reached) return t.tree_leaves[tree][leaf];
  }
  return 0;
}

TEST(PredictTreeResidual, ReachesTheLeafThatAllComparisonsLeadTo) {
  const auto policy = test::MakeRandomPolicy(33);
  const PolicyTensors& t = policy->tensors;
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    ConfigInputs inputs{};
    for (size_t f = 0; f < size_t{kConfigFeatures}; ++f)
      inputs[f] = static_cast<int16_t>(static_cast<int>(random() % 65535) - 32767);
    // One third of the inputs lie on a threshold.
    const auto& split = t.tree_nodes[round % kTrees][round % kTreeNodes];
    if (round % 3 == 0) inputs[static_cast<size_t>(split[0])] = split[1];
    int32_t expected = t.trees.base;
    for (int tree = 0; tree < t.trees.count; ++tree) expected += TreeByItsLeaves(t, tree, inputs);
    ASSERT_EQ(PredictTreeResidual(t, inputs), expected);
  }
}

}  // namespace
}  // namespace dynamiccl
