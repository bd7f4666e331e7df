// SPDX-License-Identifier: Apache-2.0
#include "src/policy/effect_inference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

EffectSubject OneChannelOfRing() {
  EffectSubject subject;
  subject.collectives = 0b1100;
  subject.fabric.n_ranks = 16;
  subject.fabric.n_nodes = 2;
  return subject;
}

int InputOf(const EffectSubject& subject, EffectFeature feature) {
  return EffectFeaturesOf(subject)[static_cast<size_t>(feature)];
}

TEST(EffectFeatures, AreTheSubjectInFixedPoint) {
  using F = EffectFeature;
  EffectSubject subject = OneChannelOfRing();
  subject.bytes = 1 << 20;
  subject.role = Role::kBackwardGather;
  subject.phase = Phase::kBackward;
  subject.exposed = 0.25;
  subject.slowness = 2;
  subject.share = 0.75;
  subject.memory = MemoryPressure::kHigh;
  subject.fabric.inter = {1.024, 1.024};  // These are 2^10 ns and 2^10 MB/s.
  EXPECT_EQ(InputOf(subject, F::kAllGather) + InputOf(subject, F::kReduceScatter), 2 * 4096);
  EXPECT_EQ(InputOf(subject, F::kAllReduce), 0);
  EXPECT_EQ(InputOf(subject, F::kBytes), 20 * 4096 / 8);
  EXPECT_EQ(InputOf(subject, F::kRanks), 4096);
  EXPECT_EQ(InputOf(subject, F::kNodes), 4096 / 4);
  EXPECT_EQ(InputOf(subject, F::kInterLatency), 10 * 4096 / 8);
  EXPECT_EQ(InputOf(subject, F::kInterBandwidth), 10 * 4096 / 8);
  EXPECT_EQ(InputOf(subject, F::kBackwardGather), 4096);
  EXPECT_EQ(InputOf(subject, F::kBackward), 4096);
  EXPECT_EQ(InputOf(subject, F::kExposed), 1024);
  EXPECT_EQ(InputOf(subject, F::kSlowness), 2048);
  EXPECT_EQ(InputOf(subject, F::kShare), 3072);
  EXPECT_EQ(InputOf(subject, F::kMemory), 3072);
  EXPECT_EQ(InputOf(subject, F::kRing) + InputOf(subject, F::kSimple) + InputOf(subject, F::kOneChannel),
            3 * 4096);
}

TEST(EffectFeatures, OfWhatIsUnknownAreZero) {
  using F = EffectFeature;
  const EffectSubject subject = OneChannelOfRing();
  for (int i = static_cast<int>(F::kIntraLatency); i <= static_cast<int>(F::kMemory); ++i)
    EXPECT_EQ(EffectFeaturesOf(subject)[static_cast<size_t>(i)], 0) << "input " << i;
  EXPECT_EQ(InputOf(subject, F::kBytes), 0);
}

TEST(EffectFeatures, StayWithinTheirLimits) {
  EffectSubject subject = OneChannelOfRing();
  subject.slowness = 1e9;
  subject.share = 1e9;
  subject.exposed = 7;
  subject.bytes = UINT64_MAX;
  const EffectInputs inputs = EffectFeaturesOf(subject);
  for (size_t i = 0; i < kEffectFeatures; ++i) EXPECT_LE(std::abs(inputs[i]), kEffectLimits[i]) << i;
}

// Computes a network in doubles from the numbers that its integers represent.
double InDoubles(const PolicyTensors& t, int n, const EffectInputs& inputs) {
  const auto cut = [](double x) { return std::clamp(x, 0.0, 2.0); };
  std::array<double, kEffectHidden> first{}, second{};
  for (size_t r = 0; r < kEffectHidden; ++r) {
    double sum = std::ldexp(t.effect_bias_1[n][r], -12 - t.effect.fraction_bits[0]);
    for (size_t i = 0; i < kEffectInputs; ++i)
      sum += std::ldexp(t.effect_weights_1[n][r][i], -t.effect.fraction_bits[0]) * inputs[i] / 4096.0;
    first[r] = cut(sum);
  }
  for (size_t r = 0; r < kEffectHidden; ++r) {
    double sum = std::ldexp(t.effect_bias_2[n][r], -13 - t.effect.fraction_bits[1]);
    for (size_t i = 0; i < kEffectHidden; ++i)
      sum += std::ldexp(t.effect_weights_2[n][r][i], -t.effect.fraction_bits[1]) * first[i];
    second[r] = cut(sum);
  }
  double output = std::ldexp(t.effect_bias_3[n], -13 - t.effect.fraction_bits[2]);
  for (size_t i = 0; i < kEffectHidden; ++i)
    output += std::ldexp(t.effect_weights_3[n][i], -t.effect.fraction_bits[2]) * second[i];
  return output;
}

TEST(PredictEffect, IsTheMeanOfTheNetworksWithTheirSpread) {
  const auto policy = test::MakeRandomPolicyWithEffects(3);
  const EffectSubject subject = OneChannelOfRing();
  double sum = 0, squares = 0;
  for (int n = 0; n < kEnsemble; ++n) {
    const double output = InDoubles(policy->tensors, n, EffectFeaturesOf(subject));
    sum += output;
    squares += output * output;
  }
  const double mean = sum / kEnsemble, spread = (squares - kEnsemble * mean * mean) / (kEnsemble - 1);
  const double own = policy->tensors.effect.error / 65536.0;
  const auto predicted = PredictEffect(policy->tensors, subject);
  ASSERT_TRUE(predicted);
  // Activations are rounded to 13 fraction bits.
  EXPECT_NEAR(predicted->mean, mean * std::log(2), 2e-3);
  EXPECT_NEAR(predicted->error, std::sqrt(own * own + spread) * std::log(2), 2e-3);
}

TEST(PredictEffect, SaysNothingBeyondTrainingOrWithoutIt) {
  EXPECT_FALSE(PredictEffect(test::MakeRandomPolicy(3)->tensors, OneChannelOfRing()));
  const auto policy = test::MakeRandomPolicyWithEffects(3);
  const auto ranks = static_cast<size_t>(EffectFeature::kRanks);
  policy->tensors.effect_domain_min[ranks] = 1024;  // This is two ranks.
  policy->tensors.effect_domain_max[ranks] = 2048;  // This is four ranks.
  EXPECT_FALSE(PredictEffect(policy->tensors, OneChannelOfRing()));
}

// Config, collectives, ranks and nodes are always known. If one of them is 0 in all training data, the answer
// is that training never saw it.
TEST(PredictEffect, SaysNothingAboutConfigsAndJobsThatTrainingNeverSaw) {
  using F = EffectFeature;
  const auto never = [](F input, void (*change)(EffectSubject&)) {
    const auto policy = test::MakeRandomPolicyWithEffects(3);
    const auto i = static_cast<size_t>(input);
    policy->tensors.effect_domain_min[i] = policy->tensors.effect_domain_max[i] = 0;
    EffectSubject subject = OneChannelOfRing();
    subject.fabric.n_nodes = 1;
    EXPECT_TRUE(PredictEffect(policy->tensors, subject)) << "input " << i;
    change(subject);
    return !PredictEffect(policy->tensors, subject);
  };
  EXPECT_TRUE(never(F::kTree, [](EffectSubject& subject) { subject.algorithm = Algorithm::kTree; }));
  EXPECT_TRUE(never(F::kPat, [](EffectSubject& subject) { subject.algorithm = Algorithm::kPat; }));
  EXPECT_TRUE(never(F::kLL128, [](EffectSubject& subject) { subject.protocol = Protocol::kLL128; }));
  EXPECT_TRUE(never(F::kFewChannels, [](EffectSubject& subject) { subject.channels = ChannelCount::kFew; }));
  EXPECT_TRUE(never(F::kAllReduce, [](EffectSubject& subject) { subject.collectives = 0b11100; }));
  EXPECT_TRUE(never(F::kNodes, [](EffectSubject& subject) { subject.fabric.n_nodes = 2; }));
}

TEST(PredictEffect, TakesWhatTrainingNeverKnewAsUnknown) {
  const auto policy = test::MakeRandomPolicyWithEffects(3);
  const auto exposed = static_cast<size_t>(EffectFeature::kExposed);
  for (const size_t input : {exposed, static_cast<size_t>(EffectFeature::kExposedKnown)})
    policy->tensors.effect_domain_min[input] = policy->tensors.effect_domain_max[input] = 0;
  EffectSubject subject = OneChannelOfRing();
  const auto unknown = PredictEffect(policy->tensors, subject);
  subject.exposed = 0.7;
  const auto known = PredictEffect(policy->tensors, subject);
  ASSERT_TRUE(unknown && known);
  EXPECT_EQ(unknown->mean, known->mean);
}

}  // namespace
}  // namespace dynamiccl
