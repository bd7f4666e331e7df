// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/table_plan.h"

#include <gtest/gtest.h>

#include <map>

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kTreeLl{Algorithm::kTree, Protocol::kLL, 2};
constexpr CollectiveConfig kRingLl{Algorithm::kRing, Protocol::kLL, 4};

KeyPlan KeyWith(std::vector<CollectiveConfig> trials) {
  KeyPlan key{{Collective::kAllReduce, {80}, Role::kGradientReduce}, kLeaveNcclAlone, std::move(trials)};
  key.pause = 20;
  return key;
}

TEST(TablePlan, EveryTrialIsMadeOnceBeforeAnyIsRepeatedAndThenComesAPause) {
  const TablePlan plan;
  const KeyPlan key = KeyWith({kTreeLl, kRingLl, {Algorithm::kRing, Protocol::kSimple, 8}});
  std::map<int, std::vector<uint32_t>> made;
  for (uint32_t ordinal = 0; ordinal < 400; ++ordinal) {
    const PlannedUse use = UseOf(plan, key, false, {ordinal, ordinal});
    if (use.use == CallUse::kTrial) made[use.trial].push_back(ordinal);
  }
  ASSERT_EQ(made.size(), 3u);
  uint32_t first_round_ends = 0;
  for (const auto& [trial, ordinals] : made) first_round_ends = std::max(first_round_ends, ordinals[0]);
  for (const auto& [trial, ordinals] : made) {
    EXPECT_GE(ordinals[0], plan.trial_from);
    EXPECT_EQ(ordinals.size(), kMaxRounds + 1);
    EXPECT_GT(ordinals[1], first_round_ends + key.pause);
  }
}

TEST(TablePlan, WhatIsKnownGoesOnInThePause) {
  const TablePlan plan;
  KeyPlan key = KeyWith({kTreeLl, kRingLl, {Algorithm::kRing, Protocol::kSimple, 8}});
  key.known_trials = 2;
  const uint32_t first_round_ends = plan.trial_from + 4;
  int made[3] = {};
  for (uint32_t ordinal = first_round_ends; ordinal < first_round_ends + key.pause; ++ordinal) {
    const PlannedUse use = UseOf(plan, key, false, {ordinal, ordinal});
    if (use.use == CallUse::kTrial) ++made[use.trial];
  }
  EXPECT_GE(made[0], 6);
  EXPECT_GE(made[1], 6);
  EXPECT_EQ(made[2], 0) << "it may have failed";
}

TEST(TablePlan, TrialsComeAsRarelyAsTheirCostAsks) {
  const TablePlan plan;
  KeyPlan key = KeyWith({kTreeLl, kRingLl, {Algorithm::kRing, Protocol::kSimple, 8}});
  key.rest = 96;
  for (const bool first_round : {true, false}) {
    key.first_round = first_round;
    std::map<int, int> made;
    uint32_t timed = 0;
    for (uint32_t ordinal = 0; ordinal < 2024; ++ordinal) {
      const PlannedUse use = UseOf(plan, key, false, {ordinal, ordinal});
      if (use.use == CallUse::kTrial) ++made[use.trial];
      timed += use.use == CallUse::kTrial && IsTimed(plan, key, false, ordinal) ? 1 : 0;
    }
    for (const int trial : {0, 1, 2}) EXPECT_NEAR(made[trial], 20, 1) << "one group in 100 calls";
    EXPECT_EQ(timed, static_cast<uint32_t>(made[0] + made[1] + made[2])) << "every trial is timed";
  }
}

TEST(TablePlan, TrialsUnderWayGoOnAtOnce) {
  const TablePlan plan;
  KeyPlan key = KeyWith({kTreeLl});
  key.first_round = false;
  int trials = 0;
  for (uint32_t ordinal = 0; ordinal < 16; ++ordinal) {
    trials += UseOf(plan, key, false, {ordinal, ordinal}).use == CallUse::kTrial ? 1 : 0;
  }
  EXPECT_EQ(trials, 8);
}

// Each trial is compared with calls of the choice between its own: without one between two of them a pair is
// lost.
TEST(TablePlan, EveryTrialHasCallsOfTheChoiceBesideIt) {
  const TablePlan plan;
  const std::vector<CollectiveConfig> all(kMaxTrials, kTreeLl);
  for (size_t trials = 1; trials <= kMaxTrials; ++trials) {
    KeyPlan key = KeyWith({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(trials)});
    key.first_round = false;
    int choices = 0;
    std::vector<int> made(trials);
    for (uint32_t ordinal = 0; ordinal < 60; ++ordinal) {
      const PlannedUse use = UseOf(plan, key, false, {ordinal, ordinal});
      use.use == CallUse::kTrial ? ++made[static_cast<size_t>(use.trial)] : ++choices;
    }
    for (const int count : made) {
      EXPECT_LE(count, choices) << trials << " trials";
      EXPECT_GE(count, made[0] - 1) << trials << " trials";
    }
  }
}

TEST(TablePlan, SamplesOfNcclsChoiceAreDenseAtFirstThenOnePercent) {
  const TablePlan plan;
  KeyPlan key = KeyWith({});
  key.choice = kTreeLl;
  int dense = 0;
  int middle = 0;
  int sparse = 0;
  uint64_t timed = 0;
  for (uint32_t ordinal = 0; ordinal < kMiddleCalls + 20'000; ++ordinal) {
    const bool sample = UseOf(plan, key, true, {ordinal, 0}).use == CallUse::kDefaultSample;
    (ordinal < kDenseCalls ? dense : ordinal < kMiddleCalls ? middle : sparse) += sample ? 1 : 0;
    if (ordinal >= kMiddleCalls) timed += IsTimed(plan, key, true, ordinal) ? 1 : 0;
  }
  EXPECT_EQ(dense, static_cast<int>(kDenseCalls / kDensePeriod));
  EXPECT_EQ(middle, static_cast<int>((kMiddleCalls - kDenseCalls) / kMiddlePeriod));
  EXPECT_NEAR(sparse, 100, 1);
  EXPECT_NEAR(static_cast<double>(timed), 200, 4) << "1 % of the calls";
  EXPECT_EQ(UseOf(plan, key, false, {3, 0}), PlannedUse{}) << "a choice that is NCCL's own needs no samples";
}

TEST(TablePlan, ASteadyChoiceIsNotSampledAnew) {
  const TablePlan plan;
  KeyPlan key = KeyWith({});
  key.choice = kTreeLl;
  key.steady = true;
  int samples = 0;
  int timed = 0;
  for (uint32_t ordinal = 0; ordinal < 20'000; ++ordinal) {
    samples += UseOf(plan, key, true, {ordinal, 0}).use == CallUse::kDefaultSample ? 1 : 0;
    timed += IsTimed(plan, key, true, ordinal) ? 1 : 0;
  }
  EXPECT_EQ(samples, 20'000 / static_cast<int>(kSparsePeriod));
  EXPECT_LE(timed, 2 * samples + 1);
}

TEST(TablePlan, NcclsChoiceIsTimedNowAndThenUntilItIsKnown) {
  const TablePlan plan;
  const KeyPlan key = KeyWith({});
  uint32_t timed = 0;
  for (uint32_t ordinal = 0; ordinal < kCalmCalls; ++ordinal)
    timed += IsTimed(plan, key, false, ordinal) ? 1 : 0;
  EXPECT_EQ(timed, kCalmCalls / kCalmPeriod);
  for (uint32_t ordinal = kCalmCalls; ordinal < 20'000; ++ordinal)
    timed += IsTimed(plan, key, false, ordinal) ? 1 : 0;
  EXPECT_NEAR(timed, 24 + 200, 4) << "then 1 % of the calls";
}

// A step of 40 calls in which the key has 4: with a fixed place a sample would always meet the same of the
// four.
TEST(TablePlan, SamplesMeetEveryPlaceOfAStep) {
  const TablePlan plan;
  KeyPlan key = KeyWith({});
  std::map<uint32_t, int> places;
  for (uint32_t ordinal = kMiddleCalls; ordinal < 40'000; ++ordinal) {
    if (UseOf(plan, key, true, {ordinal, 0}).use == CallUse::kDefaultSample) ++places[ordinal % 4];
  }
  for (uint32_t place = 0; place < 4; ++place) EXPECT_GT(places[place], 25) << place;
}

TEST(TablePlan, HiddenKeysChangeByBlocksOfCalls) {
  TablePlan plan;
  plan.block_calls = 100;
  KeyPlan key = KeyWith({kRingLl});
  key.choice = kTreeLl;
  key.in_blocks = true;
  std::vector<CallUse> blocks;
  for (uint64_t call = 50; call < 800; call += 100) blocks.push_back(UseOf(plan, key, true, {0, call}).use);
  const auto own = CallUse::kChoice;
  const auto nccl = CallUse::kDefaultSample;
  EXPECT_EQ(blocks, (std::vector{own, nccl, nccl, own, own, nccl, nccl, own}));
}

TEST(TablePlan, KeysHaveDifferentCodes) {
  std::map<uint32_t, int> codes;
  for (int collective = 0; collective < kTunableCollectives; ++collective) {
    for (int role = 0; role < kRoles; ++role) {
      for (int size = 0; size < kSizeClasses; ++size) {
        ++codes[KeyCode(
            {static_cast<Collective>(collective), {static_cast<uint8_t>(size)}, static_cast<Role>(role)})];
      }
    }
  }
  EXPECT_EQ(codes.size(), size_t{kTunableCollectives} * kRoles * kSizeClasses);
  EXPECT_LT(codes.rbegin()->first, 1u << 19);
}

}  // namespace
}  // namespace dynamiccl
