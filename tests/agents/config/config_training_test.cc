// SPDX-License-Identifier: Apache-2.0
#include "agents/config/config_training.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "agents/config/config_export.h"
#include "agents/evaluation/policy_choosers.h"
#include "src/policy/policy_checks.h"
#include "tests/support/judge_held_out.h"
#include "tests/support/synthetic_sweep.h"

namespace dynamiccl::agents {
namespace {

ConfigTrainingSettings Short() {
  ConfigTrainingSettings settings;
  settings.iterations = 400;
  settings.batch = 1024;
  return settings;
}

std::vector<SweptKey> Seen(const std::vector<SweptKey>& keys, const HoldOut& hold_out) {
  std::vector<SweptKey> seen;
  for (const SweptKey& key : keys) {
    if (SplitOf(key, hold_out) == Split::kSeen) seen.push_back(key);
  }
  return seen;
}

const RegretSummary& Find(const std::vector<RegretSummary>& summaries, const std::string& chooser,
                          Split split) {
  for (const RegretSummary& summary : summaries) {
    if (summary.chooser == chooser && summary.split == split) return summary;
  }
  throw std::logic_error(chooser);
}

TEST(ConfigTraining, EqualSeedsGiveEqualWeights) {
  const auto samples = SamplesOf(KeysOf({test::MakeSweep({.topologies = 1})}));
  ConfigTrainingSettings settings = Short();
  settings.iterations = 3;
  ConfigTrainingReport report;
  EXPECT_TRUE(at::equal(TrainConfig(samples, settings, &report).weights_2,
                        TrainConfig(samples, settings, &report).weights_2));
}

TEST(ConfigTraining, TellsTheObserverOfEveryIteration) {
  const auto samples = SamplesOf(KeysOf({test::MakeSweep({.topologies = 1})}));
  ConfigTrainingSettings settings = Short();
  settings.iterations = 3;
  std::vector<int> done;
  settings.observer = [&](const TrainingPosition& position) {
    done.push_back(position.done);
    EXPECT_EQ(position.iterations, 3);
    EXPECT_EQ(position.samples, samples.size());
  };
  ConfigTrainingReport report;
  TrainConfig(samples, settings, &report);
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

TEST(ConfigTraining, LearnsWhatTheCostModelGetsWrongAndCarriesItToOtherSizes) {
  const auto keys = KeysOf({test::MakeSweep({})});
  const HoldOut hold_out{3, {"t1"}};
  const auto seen = Seen(keys, hold_out);
  const auto samples = SamplesOf(seen);
  ConfigTrainingReport report;
  const ConfigNetworks networks = TrainConfig(samples, Short(), &report);
  EXPECT_LT(report.error_octaves, 0.3 * report.prior_octaves);

  Policy policy;
  ASSERT_TRUE(ExportConfig(networks, samples, policy.tensors));
  EXPECT_TRUE(SumsFit(policy.tensors, Agent::kConfig));
  const ConfigAgreement agreement = CompareConfig(networks, policy.tensors, keys);
  EXPECT_GT(agreement.choice, 0.99);
  EXPECT_GT(agreement.cheapest, 0.9);
  EXPECT_LT(agreement.difference_octaves, 0.01);

  const Chooser library{"default", [](const SweptKey&) { return kLeaveNcclAlone; }};
  const auto summaries = JudgeHeldOut(keys, hold_out, {library, PolicyChooser(policy)});
  for (const Split split : {Split::kSeen, Split::kHeldOutSize, Split::kHeldOutTopology}) {
    const double before = Find(summaries, "default", split).mean_regret;
    EXPECT_LT(Find(summaries, "policy", split).mean_regret, 0.5 * before) << Name(split);
    EXPECT_LT(Find(summaries, "policy", split).share_worse, 0.1) << Name(split);
  }
}

TEST(ConfigTraining, WhereTheCostModelIsRightNcclIsLeftAlone) {
  const auto keys = KeysOf({test::MakeSweep({.hidden_factor = 1})});
  const auto samples = SamplesOf(keys);
  ConfigTrainingReport report;
  Policy policy;
  ASSERT_TRUE(ExportConfig(TrainConfig(samples, Short(), &report), samples, policy.tensors));
  const auto summaries = JudgeHeldOut(keys, {}, {PolicyChooser(policy)});
  EXPECT_LT(summaries[0].share_changed, 0.25);
  EXPECT_LT(summaries[0].share_worse, 0.02);
}

// Noise makes two equally fast configs differ in a sweep. A promised gain below that difference means
// nothing.
TEST(ConfigTraining, ThePromiseAskedForGrowsWithTheNoiseOfTheSweep) {
  ConfigTrainingSettings settings = Short();
  settings.iterations = 1;
  ConfigTrainingReport report;
  const auto gate = [&](double noise, int repeats = 6) {
    const auto samples =
        SamplesOf(KeysOf({test::MakeSweep({.topologies = 1, .repeats = repeats, .noise = noise})}));
    const auto policy = std::make_unique<Policy>();
    EXPECT_TRUE(ExportConfig(TrainConfig(samples, settings, &report), samples, policy->tensors));
    return std::exp2(policy->tensors.config.gate / 65536.0);
  };
  EXPECT_NEAR(gate(0.001), 1.03, 1e-4);
  EXPECT_GT(gate(0.1), 1.05);
  EXPECT_GT(gate(0.2), gate(0.1));
  // A sweep whose budget ends early has two repeats. Each half then has one repeat, so no spread can be
  // computed.
  EXPECT_NEAR(gate(0.001, 2), 1.03, 1e-4);
  EXPECT_GT(gate(0.2, 2), gate(0.2));
  EXPECT_GT(gate(0.2, 3), gate(0.2));
}

}  // namespace
}  // namespace dynamiccl::agents
