// SPDX-License-Identifier: Apache-2.0
#include "agents/config/boosted_trees.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "src/policy/config_inference.h"
#include "src/policy/policy_checks.h"

namespace dynamiccl::agents {
namespace {

constexpr auto kBytesAt = static_cast<size_t>(ConfigFeature::kBytes);
constexpr auto kRanksAt = static_cast<size_t>(ConfigFeature::kRanks);

double Truth(const ConfigInputs& inputs) {
  return (inputs[kBytesAt] < 5000 ? -1.0 : 2.0) + (inputs[kRanksAt] < 0 ? 0.5 : 0.0);
}

std::vector<ConfigSample> Samples(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<ConfigSample> samples(count);
  for (ConfigSample& sample : samples) {
    for (size_t f = 0; f < size_t{kConfigFeatures}; ++f)
      sample.inputs[f] = static_cast<int16_t>(static_cast<int>(random() % 20000) - 10000);
    sample.residual = Truth(sample.inputs);
  }
  return samples;
}

class BoostedTrees : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanTrainTrees()) GTEST_SKIP() << "this build has no XGBoost";
  }
};

TEST_F(BoostedTrees, LearnStepsAndCarryThemToOtherInputs) {
  const auto policy = std::make_unique<Policy>();
  const Status trained = TrainTrees(Samples(4000, 1), {}, policy->tensors);
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(policy->tensors.trees.count, kTrees);
  EXPECT_EQ(FindTreeFault(policy->tensors).kind, 0u);
  double error = 0;
  const auto fresh = Samples(1000, 2);
  for (const ConfigSample& sample : fresh)
    error += std::fabs(PredictTreeResidual(policy->tensors, sample.inputs) / 65536.0 - sample.residual);
  EXPECT_LT(error / static_cast<double>(fresh.size()), 0.05);
}

TEST_F(BoostedTrees, EqualSeedsGiveEqualTreesAndOthersDiffer) {
  const auto one = std::make_unique<Policy>(), same = std::make_unique<Policy>(),
             other = std::make_unique<Policy>();
  ASSERT_TRUE(TrainTrees(Samples(500, 1), {.seed = 4}, one->tensors));
  ASSERT_TRUE(TrainTrees(Samples(500, 1), {.seed = 4}, same->tensors));
  ASSERT_TRUE(TrainTrees(Samples(500, 1), {.seed = 5}, other->tensors));
  const auto equal = [](const PolicyTensors& a, const PolicyTensors& b) {
    return std::memcmp(a.tree_leaves, b.tree_leaves, sizeof(a.tree_leaves)) == 0 &&
           std::memcmp(a.tree_nodes, b.tree_nodes, sizeof(a.tree_nodes)) == 0;
  };
  EXPECT_TRUE(equal(one->tensors, same->tensors));
  EXPECT_FALSE(equal(one->tensors, other->tensors));
}

// Training of a tree stops early if all samples have one value. All its leaves must then have that value.
TEST_F(BoostedTrees, ConstantTargetsAreTheBaseAlone) {
  std::vector<ConfigSample> samples = Samples(300, 3);
  for (ConfigSample& sample : samples) sample.residual = 1.25;
  const auto policy = std::make_unique<Policy>();
  ASSERT_TRUE(TrainTrees(samples, {}, policy->tensors));
  for (const ConfigSample& sample : Samples(50, 4))
    EXPECT_NEAR(PredictTreeResidual(policy->tensors, sample.inputs) / 65536.0, 1.25, 1e-3);
}

}  // namespace
}  // namespace dynamiccl::agents
