// SPDX-License-Identifier: Apache-2.0
#include "agents/config/effect_training.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "agents/integer_reference.h"
#include "src/decision/guard/expected_effect.h"
#include "src/policy/policy_checks.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl::agents {
namespace {

// The effect of a config in an invented world. One channel helps if calls are slow and take up the step;
// otherwise it costs a little. LL always costs.
double TrueEffect(const MeasuredEffect& effect) {
  double log_ratio = effect.config.protocol == Protocol::kLL ? 0.2 : 0.0;
  if (effect.channel_count == ChannelCount::kOne)
    log_ratio += *effect.slowness > 1.5 ? -0.5 * *effect.share : 0.05;
  return log_ratio;
}

// Effects of all configs on one fabric, measured with an error of 2 %.
void AddFabric(double slowness, std::mt19937_64& random, MeasurementFile& file) {
  const std::string name = "fabric " + std::to_string(file.contexts.size());
  file.contexts.push_back({name, {}});
  file.contexts.back().model.fabric = {2, 2, 8, {}, {}};
  for (const double share : {0.3, 0.6, 0.8}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      for (int count = 0; count < kChannelCounts; ++count) {
        MeasuredEffect effect;
        effect.topology = name;
        effect.collectives = 0b1100;
        effect.slowness = slowness;
        effect.share = share;
        effect.config = {Algorithm::kRing, protocol, 0};
        effect.channel_count = static_cast<ChannelCount>(count);
        effect.error = 0.02;
        effect.steps = 10;
        effect.log_ratio = TrueEffect(effect) + std::normal_distribution<double>(0, effect.error)(random);
        file.effects.push_back(effect);
      }
    }
  }
}

MeasurementFile World() {
  MeasurementFile file;
  std::mt19937_64 random(5);
  for (const double slowness : {0.1, 0.2, 0.5, 0.9, 2.2, 2.4, 2.6, 2.9}) AddFabric(slowness, random, file);
  return file;
}

TEST(EffectSamples, LeaveOutHeldOutFabricsAndWeighSureEffectsMore) {
  MeasurementFile file = World();
  file.effects[0].error = 0.5;
  const auto all = EffectSamplesOf({file}, {});
  EXPECT_EQ(all.size(), file.effects.size());
  EXPECT_LT(all[0].weight, all[1].weight / 10);
  EXPECT_DOUBLE_EQ(all[1].octaves, file.effects[1].log_ratio / std::numbers::ln2);
  HoldOut hold_out;
  hold_out.topologies = {"fabric 0", "fabric 3"};
  EXPECT_EQ(EffectSamplesOf({file}, hold_out).size(), file.effects.size() * 6 / 8);
  HoldOut two_ranks;
  two_ranks.ranks = 2;
  EXPECT_TRUE(EffectSamplesOf({file}, two_ranks).empty());
}

TEST(EffectTraining, EqualSeedsGiveEqualWeights) {
  const auto samples = EffectSamplesOf({World()}, {});
  EffectTrainingSettings settings;
  settings.iterations = 3;
  EXPECT_TRUE(
      at::equal(TrainEffects(samples, settings).weights_2, TrainEffects(samples, settings).weights_2));
}

TEST(EffectTraining, PredictsFabricsThatItDidNotSee) {
  const auto samples = EffectSamplesOf({World()}, {});
  const auto predicted = PredictHeldOut(samples, {});
  const EffectErrors errors = ErrorsOf(samples, predicted);
  EXPECT_EQ(errors.fabrics, 8u);
  // The fabrics with the least and the greatest slowness are not judged: the others do not cover theirs.
  EXPECT_EQ(errors.judged, samples.size() * 6 / 8);
  EXPECT_LT(errors.predicted, errors.nothing / 2);
}

TEST(EffectTraining, NothingIsKnownOfOtherFabricsFromASingleOne) {
  MeasurementFile file;
  std::mt19937_64 random(5);
  AddFabric(2, random, file);
  const auto samples = EffectSamplesOf({file}, {});
  EXPECT_EQ(ErrorsOf(samples, PredictHeldOut(samples, {})).judged, 0u);
  const auto policy = test::MakeRandomPolicy(1);
  ASSERT_TRUE(AddEffects(samples, {}, policy->tensors));
  EXPECT_NEAR(policy->tensors.effect.error / 65536.0 * std::numbers::ln2, 0.1, 1e-4);
}

TEST(EffectTraining, GivesThePolicyIntegersThatPredictTheSame) {
  const MeasurementFile file = World();
  const auto samples = EffectSamplesOf({file}, {});
  const auto policy = test::MakeRandomPolicy(1);
  const auto errors = AddEffects(samples, {}, policy->tensors);
  ASSERT_TRUE(errors) << errors.error().message;
  FillGoldenOutputs(policy->tensors);
  EXPECT_EQ(FindFault(policy->tensors).kind, 0u);
  EXPECT_EQ(policy->tensors.effect.count, static_cast<int32_t>(samples.size()));
  double off = 0;
  for (const MeasuredEffect& effect : file.effects) {
    const auto predicted = PredictEffect(policy->tensors, SubjectOf(effect, file.contexts[0].model.fabric));
    ASSERT_TRUE(predicted);
    off += std::abs(predicted->mean - TrueEffect(effect));
  }
  EXPECT_LT(off / static_cast<double>(samples.size()), 0.03);
}

// `ab --effects` states the size of the calls and, if known, their role. A job's leader asks without either.
TEST(EffectTraining, JobsGetAnswersFromEffectsThatSayMoreThanJobsDo) {
  MeasurementFile file = World();
  for (MeasuredEffect& effect : file.effects) {
    effect.bytes = 4 << 20;
    effect.role = Role::kGradientReduce;
    effect.phase = Phase::kBackward;
    effect.memory = MemoryPressure::kLow;
    effect.exposed = 0.5;
  }
  const auto policy = std::make_unique<Policy>();
  ASSERT_TRUE(AddEffects(EffectSamplesOf({file}, {}), {}, policy->tensors));
  for (const MeasuredEffect& effect : file.effects) {
    EffectQuestion question{
        {{}, effect.collectives, Algorithm::kRing, effect.config.protocol, effect.channel_count},
        {*effect.slowness, *effect.share}};
    const auto predicted = PredictedEffectOf(*policy, file.contexts[0].model.fabric, question);
    ASSERT_TRUE(predicted);
    EXPECT_NEAR(predicted->mean, TrueEffect(effect), 0.15);
  }
}

}  // namespace
}  // namespace dynamiccl::agents
