// SPDX-License-Identifier: Apache-2.0
#include "agents/config/fine_tuning.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "agents/config/boosted_trees.h"
#include "agents/config/config_export.h"
#include "src/policy/config_inference.h"
#include "tests/support/synthetic_sweep.h"

namespace dynamiccl::agents {
namespace {

// The old and the new site. The times of the new site are farther from the cost model.
std::vector<ConfigSample> OldSite() {
  return SamplesOf(KeysOf({test::MakeSweep({.seed = 1, .topologies = 1})}));
}
std::vector<ConfigSample> NewSite() {
  return SamplesOf(KeysOf({test::MakeSweep({.seed = 7, .topologies = 1, .hidden_factor = 6})}));
}

double TreeError(const PolicyTensors& tensors, const std::vector<ConfigSample>& samples) {
  double error = 0;
  for (const ConfigSample& sample : samples)
    error += std::abs(sample.residual - PredictTreeResidual(tensors, sample.inputs) / 65536.0);
  return error / static_cast<double>(samples.size());
}

ConfigTrainingSettings Short() {
  ConfigTrainingSettings settings;
  settings.iterations = 300;
  return settings;
}

TEST(FineTuning, StartsFromWhatTheIntegersSay) {
  const auto samples = OldSite();
  ConfigTrainingReport report;
  const ConfigNetworks trained = TrainConfig(samples, Short(), &report);
  auto policy = std::make_unique<Policy>();
  ASSERT_TRUE(ExportConfig(trained, samples, policy->tensors));
  const ConfigAgreement same = CompareConfig(NetworksOf(policy->tensors), policy->tensors,
                                             KeysOf({test::MakeSweep({.seed = 1, .topologies = 1})}));
  EXPECT_LT(same.difference_octaves, 0.001);
}

TEST(FineTuning, ANewSiteIsLearntAndEqualSeedsGiveEqualWeights) {
  const auto old_site = OldSite(), new_site = NewSite();
  ConfigTrainingReport before, after, again;
  ConfigNetworks networks = TrainConfig(old_site, Short(), &before);
  auto policy = std::make_unique<Policy>();
  ASSERT_TRUE(ExportConfig(networks, old_site, policy->tensors));
  ConfigTrainingSettings none = FineTuningSettings(1);
  none.iterations = 0;
  ContinueTraining(networks, new_site, none, &before);
  ContinueTraining(networks, new_site, FineTuningSettings(1), &after);
  EXPECT_LT(after.error_octaves, 0.5 * before.error_octaves);
  ConfigNetworks same = NetworksOf(policy->tensors);
  ContinueTraining(same, new_site, FineTuningSettings(1), &again);
  EXPECT_NEAR(again.error_octaves, after.error_octaves, 0.02);
}

TEST(FineTuning, LeavesMoveTowardsTheNewSite) {
  if (!CanTrainTrees()) GTEST_SKIP() << "this build has no XGBoost";
  auto policy = std::make_unique<Policy>();
  ASSERT_TRUE(TrainTrees(OldSite(), {}, policy->tensors));
  const auto new_site = NewSite();
  const double before = TreeError(policy->tensors, new_site);
  RefreshLeaves(new_site, policy->tensors);
  EXPECT_LT(TreeError(policy->tensors, new_site), 0.7 * before);
}

}  // namespace
}  // namespace dynamiccl::agents
