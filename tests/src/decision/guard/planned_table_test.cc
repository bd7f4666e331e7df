// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/planned_table.h"

#include <gtest/gtest.h>

#include <random>

#include "src/collective/legal_configs.h"
#include "src/decision/guard/table_plan.h"

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kTree{Algorithm::kTree, Protocol::kLL, 2};
constexpr CollectiveConfig kRing{Algorithm::kRing, Protocol::kLL, 4};
constexpr TableKey kKey{Collective::kAllReduce, {80}, Role::kGradientReduce};
constexpr TableKey kOther{Collective::kAllReduce, {81}, Role::kGradientReduce};

TablePlan RandomPlan(std::mt19937_64& random, size_t keys) {
  TablePlan plan;
  plan.others_use_policy = random() % 2 == 0;
  plan.step_calls = static_cast<uint32_t>(random() % 50);
  plan.step_origin = random() % 1000;
  if (random() % 2 == 0) plan.common = {kTree, kRing};
  plan.common_spacing = static_cast<uint16_t>(1 + random() % 60);
  plan.common_pause = static_cast<uint16_t>(random() % 2 * (2 + random() % 7));
  for (size_t i = 0; i < keys; ++i) {
    KeyPlan key;
    key.key = {static_cast<Collective>(random() % kTunableCollectives),
               {static_cast<uint8_t>(random())},
               static_cast<Role>(random() % kRoles)};
    const auto configs = EnumerateConfigs(NcclConfigs(key.key.collective), 32);
    const auto any = [&] { return configs[random() % configs.size()]; };
    if (random() % 2 == 0) key.choice = any();
    for (size_t arms = random() % (kMaxArmsOfPlan + 1); key.arms.size() < arms;) {
      const CollectiveConfig arm = any();
      if (arm != key.choice) key.arms.push_back(arm);
    }
    key.steady = random() % 2 == 0;
    key.joins = random() % 2 == 0;
    key.spacing = static_cast<uint16_t>(1 + random() % 60);
    plan.keys.push_back(std::move(key));
  }
  return plan;
}

TEST(PlanBytes, PlansSurvive) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 300; ++round) {
    const TablePlan plan = RandomPlan(random, random() % 40);
    const auto bytes = EncodePlan(plan);
    const auto read = DecodePlan(bytes);
    ASSERT_TRUE(read) << "seed 21, round " << round;
    EXPECT_EQ(EncodePlan(*read), bytes);
    ASSERT_EQ(read->keys.size(), plan.keys.size());
    EXPECT_EQ(read->common, plan.common);
    EXPECT_EQ(read->common_spacing, plan.common_spacing);
    EXPECT_EQ(read->common_pause, plan.common_pause);
    for (size_t i = 0; i < plan.keys.size(); ++i) {
      EXPECT_EQ(KeyCode(read->keys[i].key), KeyCode(plan.keys[i].key));
      EXPECT_EQ(read->keys[i].choice, plan.keys[i].choice);
      EXPECT_EQ(read->keys[i].arms, plan.keys[i].arms);
      EXPECT_EQ(read->keys[i].steady, plan.keys[i].steady);
      EXPECT_EQ(read->keys[i].spacing, plan.keys[i].spacing);
      EXPECT_EQ(read->keys[i].joins, plan.keys[i].joins);
    }
  }
}

TEST(PlanBytes, WhatMakesNoSenseIsRefused) {
  TablePlan plan;
  plan.keys.push_back({kKey, kRing, {kTree, kLeaveNcclAlone}});
  EXPECT_TRUE(DecodePlan(EncodePlan(plan)));
  plan.keys[0].spacing = 0;
  EXPECT_FALSE(DecodePlan(EncodePlan(plan))) << "an arm in every step of none";
  plan.keys[0] = {kKey, kRing, {kRing}};
  EXPECT_FALSE(DecodePlan(EncodePlan(plan))) << "the choice as an arm beside itself";
  plan.keys[0] = {kKey, kRing, std::vector(kMaxArmsOfPlan + 1, kTree)};
  EXPECT_FALSE(DecodePlan(EncodePlan(plan)));
  plan.keys.clear();
  plan.common = {{Algorithm::kPat, Protocol::kSimple, 2}, kTree};
  EXPECT_TRUE(DecodePlan(EncodePlan(plan)));
  plan.common_spacing = 0;
  EXPECT_FALSE(DecodePlan(EncodePlan(plan)));
  plan.common_spacing = 4;
  plan.common_pause = 1;
  EXPECT_FALSE(DecodePlan(EncodePlan(plan))) << "an arm in no step";
  plan.common_pause = 0;
  plan.common = {{Algorithm::kPat, Protocol::kLL, 2}};
  EXPECT_FALSE(DecodePlan(EncodePlan(plan))) << "no collective has it";
  plan.common = {kLeaveNcclAlone};
  EXPECT_FALSE(DecodePlan(EncodePlan(plan)));
  plan.common.assign(kMaxArmsOfPlan + 1, kTree);
  EXPECT_FALSE(DecodePlan(EncodePlan(plan)));
}

// Returns a plan of different keys, more than a plan has room for.
TablePlan LargePlan(size_t keys, size_t arms) {
  TablePlan plan;
  for (size_t i = 0; i < keys; ++i) {
    KeyPlan key;
    key.key = {static_cast<Collective>(i % kTunableCollectives), SizeClass{static_cast<uint8_t>(i / 5 % 200)},
               static_cast<Role>(i / 1000)};
    key.choice = i % 3 == 0 ? kLeaveNcclAlone : kRing;
    key.arms.assign(arms, {Algorithm::kRing, Protocol::kLL, 8});
    plan.keys.push_back(key);
  }
  return plan;
}

TEST(PlanBytes, WhatFitsIsLeftAsItIs) {
  std::mt19937_64 random(22);
  const TablePlan plan = RandomPlan(random, 160);
  EXPECT_EQ(EncodePlan(Fitting(plan)), EncodePlan(plan));
}

TEST(PlanBytes, OfTooManyArmsTheLastKeysLoseTheirs) {
  const TablePlan plan = LargePlan(400, kMaxArmsOfPlan);
  const TablePlan fitting = Fitting(plan);
  const auto read = DecodePlan(EncodePlan(fitting));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->keys.size(), plan.keys.size());
  EXPECT_TRUE(read->others_use_policy);
  EXPECT_EQ(read->keys.front().arms.size(), plan.keys.front().arms.size());
  EXPECT_TRUE(read->keys.back().arms.empty());
  for (size_t i = 0; i < plan.keys.size(); ++i) EXPECT_EQ(read->keys[i].choice, plan.keys[i].choice);
}

// A revoked choice must not come back because the plan has no room to list its key.
TEST(PlanBytes, OfTooManyKeysThoseThatAreNotListedAreLeftToNccl) {
  const TablePlan plan = LargePlan(2000, 0);
  const auto read = DecodePlan(EncodePlan(Fitting(plan)));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->others_use_policy);
  EXPECT_GT(read->keys.size(), 600u);
  for (const KeyPlan& key : read->keys) EXPECT_FALSE(key.choice.leaves_nccl_alone());
}

TEST(PlanBytes, TruncatedOrFlippedIsRefused) {
  std::mt19937_64 random(23);
  std::vector<std::byte> bytes = EncodePlan(RandomPlan(random, 12));
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(DecodePlan(std::span(bytes).first(length))) << length;
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    ASSERT_FALSE(DecodePlan(bytes)) << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(DecodePlan(bytes));
}

TEST(PlannedTable, ListedKeysHaveTheirOwnChoiceAndOthersThePolicys) {
  TablePlan plan;
  plan.keys.push_back({kKey, kRing, {}});
  PlannedTable table(plan);
  int own = 0;
  int policy_calls = 0;
  for (uint64_t call = 0; call < kDenseCalls; ++call) {
    own += table.At(kKey, kTree, call).config == kRing ? 1 : 0;
    policy_calls += table.At(kOther, kTree, call).config == kTree ? 1 : 0;
  }
  const int without_samples = kDenseCalls - kDenseCalls / kDensePeriod;
  EXPECT_EQ(own, without_samples);
  EXPECT_EQ(policy_calls, without_samples);
}

TEST(PlannedTable, AfterARevocationOfThePolicyOtherKeysAreNccls) {
  TablePlan plan;
  plan.others_use_policy = false;
  PlannedTable table(plan);
  for (uint64_t call = 0; call < 100; ++call) {
    EXPECT_EQ(table.At(kOther, kTree, call).config, kLeaveNcclAlone);
  }
}

TEST(PlannedTable, ToBeAskedTwiceWithinACallChangesNothing) {
  TablePlan plan;
  plan.keys.push_back({kKey, kLeaveNcclAlone, {kRing, kTree}});
  PlannedTable once(plan);
  PlannedTable twice(plan);
  std::mt19937_64 random(24);
  uint64_t call = 7;
  for (int i = 0; i < 500; ++i, call += 1 + random() % 3) {
    const PlannedCall answer = once.At(kKey, {}, call);
    for (size_t asked = 1 + random() % 3; asked > 0; --asked) {
      const PlannedCall again = twice.At(kKey, {}, call);
      ASSERT_EQ(again.config, answer.config);
      ASSERT_EQ(again.use, answer.use);
    }
  }
}

// The answers of a table depend only on the plan and the calls, so two ranks with equal calls get equal
// answers.
TEST(PlannedTable, TwoRanksAnswerAlike) {
  std::mt19937_64 random(25);
  const TablePlan plan = RandomPlan(random, 30);
  PlannedTable first(plan);
  PlannedTable second(*DecodePlan(EncodePlan(plan)));
  for (uint64_t call = 100; call < 20'000; ++call) {
    const TableKey& key = plan.keys[random() % plan.keys.size()].key;
    const PlannedCall a = first.At(key, kTree, call);
    const PlannedCall b = second.At(key, kTree, call);
    ASSERT_EQ(a.config, b.config);
    ASSERT_EQ(a.use, b.use);
    ASSERT_EQ(first.TimesNext(key, call + 1), second.TimesNext(key, call + 1));
  }
}

}  // namespace
}  // namespace dynamiccl
