// SPDX-License-Identifier: Apache-2.0
// Tests predictions from findings of other places.
#include "src/decision/guard/expected_effect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/policy/effect_inference.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

constexpr int64_t kNow = 1'800'000'000;
constexpr Circumstances kSlowRail{2.5, 0.8};

FindingKey OneChannel(uint32_t place) {
  FindingKey key{{}, 0b1100, Algorithm::kRing, Protocol::kSimple, ChannelCount::kOne};
  key.place.n_ranks = 8;
  key.place.n_nodes = 2;
  key.place.nccl_version = place;
  return key;
}

// Returns a store of jobs in three places, where one channel saved a quarter of a step.
SiteStore ThreePlaces() {
  SiteStore store;
  for (uint32_t place = 0; place < 3; ++place)
    store.Learn(OneChannel(place), {{2.3 + 0.2 * place, 0.8}, -0.25, 0.03, 40, kNow});
  return store;
}

TEST(ExpectedEffect, LikeCircumstancesPromiseALikeGain) {
  const auto expected = ExpectedEffect(ThreePlaces(), {OneChannel(9), kSlowRail}, kNow);
  ASSERT_TRUE(expected);
  EXPECT_NEAR(expected->mean, -0.19, 0.02) << "drawn to 0 by the prior";
  EXPECT_LT(expected->error, 0.08);
  EXPECT_TRUE(IsPromising(*expected));
}

TEST(ExpectedEffect, OtherCircumstancesPromiseNothing) {
  for (const Circumstances other : {Circumstances{0.2, 0.8}, Circumstances{2.5, 0.1}, Circumstances{6, 0.8}})
    EXPECT_FALSE(ExpectedEffect(ThreePlaces(), {OneChannel(9), other}, kNow)) << other.slowness;
}

TEST(ExpectedEffect, AnotherConfigOrAnotherKindOfLinksPromisesNothing) {
  for (const auto change :
       std::vector<void (*)(FindingKey&)>{[](FindingKey& key) { key.protocol = Protocol::kLL; },
                                          [](FindingKey& key) { key.channels = ChannelCount::kMany; },
                                          [](FindingKey& key) { key.place.n_nodes = 1; }}) {
    EffectQuestion question{OneChannel(9), kSlowRail};
    change(question.subject);
    EXPECT_FALSE(ExpectedEffect(ThreePlaces(), question, kNow));
  }
}

// A finding about a related config promises less than one about the config itself, and with less certainty.
TEST(ExpectedEffect, RelativesCountLess) {
  EffectQuestion tree{OneChannel(9), kSlowRail}, others{OneChannel(9), kSlowRail},
      many{OneChannel(9), kSlowRail};
  tree.subject.algorithm = Algorithm::kTree;
  others.subject.collectives = 0b10000;
  many.subject.place.n_ranks = 128;
  const double same = ExpectedEffect(ThreePlaces(), {OneChannel(9), kSlowRail}, kNow)->mean;
  for (const EffectQuestion& question : {tree, others, many}) {
    const auto expected = ExpectedEffect(ThreePlaces(), question, kNow);
    ASSERT_TRUE(expected);
    EXPECT_LT(expected->mean, -0.05);
    EXPECT_GT(expected->mean, same + 0.01);
  }
}

TEST(ExpectedEffect, FindingsThatDisagreePromiseNothingSurely) {
  SiteStore store = ThreePlaces();
  for (uint32_t place = 3; place < 5; ++place)
    store.Learn(OneChannel(place), {kSlowRail, 0.1, 0.03, 40, kNow});
  const auto expected = ExpectedEffect(store, {OneChannel(9), kSlowRail}, kNow);
  ASSERT_TRUE(expected);
  EXPECT_GT(expected->error, 0.12);
  EXPECT_FALSE(IsPromising(*expected));
}

// A finding with a large standard error counts less than one with a small error.
TEST(ExpectedEffect, UnsureFindingsCountLess) {
  const auto with_error = [](double error) {
    SiteStore store = ThreePlaces();
    store.Learn(OneChannel(3), {kSlowRail, 0.1, error, 3, kNow});
    return ExpectedEffect(store, {OneChannel(9), kSlowRail}, kNow)->mean;
  };
  EXPECT_LT(with_error(0.2), -0.15);
  EXPECT_GT(with_error(0.02), -0.13);
}

TEST(ExpectedEffect, SmallGainsAndOldFindingsPromiseNothing) {
  SiteStore store;
  for (uint32_t place = 0; place < 9; ++place)
    store.Learn(OneChannel(place), {kSlowRail, -0.03, 0.003, 90, kNow});
  EXPECT_FALSE(IsPromising(*ExpectedEffect(store, {OneChannel(9), kSlowRail}, kNow)));
  EXPECT_FALSE(ExpectedEffect(ThreePlaces(), {OneChannel(9), kSlowRail}, kNow + kTrustedSeconds + 1));
  EXPECT_FALSE(ExpectedEffect({}, {OneChannel(9), kSlowRail}, kNow));
}

// The job's fabric in the form of the policy's inputs.
constexpr Fabric kTwoNodes{8, 2, 8, {1, 20}, {5, 10}};

// Returns a policy that expects one Ring channel with Simple to take a fifth less time, and no gain from
// other configs.
std::unique_ptr<Policy> ExpectsOfOneChannel() {
  return test::MakePolicyThatExpects({.octaves = std::log2(0.8), .error = 0.1});
}

TEST(PredictedEffectOf, IsWhatThePolicysNetworksSayOfTheSameSubject) {
  const auto policy = test::MakeRandomPolicyWithEffects(3);
  FindingKey key = OneChannel(9);
  key.collectives = 0b10000;
  key.algorithm = Algorithm::kTree;
  key.protocol = Protocol::kLL128;
  key.channels = ChannelCount::kFew;
  EffectSubject subject;
  subject.collectives = 0b10000;
  subject.slowness = 2.5;
  subject.share = 0.8;
  subject.fabric = kTwoNodes;
  subject.algorithm = Algorithm::kTree;
  subject.protocol = Protocol::kLL128;
  subject.channels = ChannelCount::kFew;
  const auto expected = PredictEffect(policy->tensors, subject);
  const auto predicted = PredictedEffectOf(*policy, kTwoNodes, {key, kSlowRail});
  ASSERT_TRUE(expected && predicted);
  EXPECT_EQ(predicted->mean, expected->mean);
  EXPECT_EQ(predicted->error, std::max(expected->error, 0.05));
}

// Places differ by 5 %, so the steps of a job overrule a policy that claims to be certain.
TEST(PredictedEffectOf, IsNeverSurerThanPlacesAreAlike) {
  const auto policy = test::MakePolicyThatExpects({.octaves = std::log2(0.8), .error = 0.0001});
  EXPECT_EQ(PredictedEffectOf(*policy, kTwoNodes, {OneChannel(9), kSlowRail})->error, 0.05);
}

TEST(ExpectedBy, TheSiteStoreComesFirstAndThePolicyOnlyWhereItKnowsNothing) {
  const SiteStore store = ThreePlaces();
  const auto policy = ExpectsOfOneChannel();
  const EffectQuestion question{OneChannel(9), kSlowRail};
  const auto by_both = ExpectedBy({&store, policy.get(), kTwoNodes}, question, kNow);
  ASSERT_TRUE(by_both);
  EXPECT_EQ(by_both->from, ExpectedFrom::kOtherPlaces);
  EXPECT_EQ(by_both->effect.mean, ExpectedEffect(store, question, kNow)->mean);

  EffectQuestion unknown_here = question;
  unknown_here.circumstances.slowness = 6;
  const auto by_policy = ExpectedBy({&store, policy.get(), kTwoNodes}, unknown_here, kNow);
  ASSERT_TRUE(by_policy);
  EXPECT_EQ(by_policy->from, ExpectedFrom::kPolicy);
  EXPECT_NEAR(by_policy->effect.mean, std::log(0.8), 1e-3);
  EXPECT_NEAR(by_policy->effect.error, 0.1 * std::log(2), 1e-3);
  EXPECT_TRUE(IsPromising(by_policy->effect));
  EXPECT_EQ(ExpectedBy({nullptr, policy.get(), kTwoNodes}, question, kNow)->from, ExpectedFrom::kPolicy);
}

TEST(FirstPlan, LeavesKeysToNcclWhereThePolicyPredictsEffects) {
  EXPECT_TRUE(FirstPlan(nullptr).others_use_policy);
  EXPECT_TRUE(FirstPlan(test::MakeRandomPolicy(3).get()).others_use_policy);
  EXPECT_FALSE(FirstPlan(ExpectsOfOneChannel().get()).others_use_policy);
}

// On this site the config gave no gain, so the policy's promise does not count.
TEST(ExpectedBy, FindingsOverruleThePolicy) {
  SiteStore store;
  for (uint32_t place = 0; place < 3; ++place)
    store.Learn(OneChannel(place), {kSlowRail, 0.1, 0.02, 40, kNow});
  const auto policy = ExpectsOfOneChannel();
  const auto expected = ExpectedBy({&store, policy.get(), kTwoNodes}, {OneChannel(9), kSlowRail}, kNow);
  ASSERT_TRUE(expected);
  EXPECT_EQ(expected->from, ExpectedFrom::kOtherPlaces);
  EXPECT_FALSE(IsPromising(expected->effect));
}

TEST(ExpectedBy, NothingIsExpectedWithoutAFindingOrAPolicyThatLearntFromExperiments) {
  const SiteStore store;
  const auto untold = test::MakeRandomPolicy(3);
  const EffectQuestion question{OneChannel(9), kSlowRail};
  EXPECT_FALSE(ExpectedBy({}, question, kNow));
  EXPECT_FALSE(ExpectedBy({&store, nullptr, kTwoNodes}, question, kNow));
  EXPECT_FALSE(ExpectedBy({&store, untold.get(), kTwoNodes}, question, kNow));
  const auto narrow = ExpectsOfOneChannel();
  // This is one octave.
  narrow->tensors.effect_domain_max[static_cast<size_t>(EffectFeature::kSlowness)] = 1024;
  EXPECT_FALSE(ExpectedBy({&store, narrow.get(), kTwoNodes}, question, kNow))
      << "calls are slower than any it saw";
}

TEST(BeganLike, OnlyAnotherSlownessOfTheSamePlaceSaysNo) {
  const SiteStore store = ThreePlaces();
  const SitePlace here = OneChannel(1).place;  // The finding was made at 2.5 octaves.
  EXPECT_TRUE(BeganLike(store, here, {2.5, 0.1}, kNow));
  EXPECT_TRUE(BeganLike(store, here, {1.6, 0.8}, kNow));
  EXPECT_FALSE(BeganLike(store, here, {0.5, 0.8}, kNow));
  EXPECT_FALSE(BeganLike(store, here, {4.5, 0.8}, kNow));
  EXPECT_TRUE(BeganLike(store, here, {0.5, 0.8}, kNow + kTrustedSeconds + 1)) << "no finding is trusted";
  EXPECT_TRUE(BeganLike(store, OneChannel(9).place, {0.5, 0.8}, kNow)) << "nothing is known of that place";
}

}  // namespace
}  // namespace dynamiccl
