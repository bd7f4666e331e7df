// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/table_plan.h"

#include <gtest/gtest.h>

#include <map>

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kTreeLl{Algorithm::kTree, Protocol::kLL, 2};
constexpr CollectiveConfig kRingLl{Algorithm::kRing, Protocol::kLL, 4};

constexpr CollectiveConfig kRingSimple{Algorithm::kRing, Protocol::kSimple, 8};
constexpr uint32_t kStepCalls = 10;
constexpr uint64_t kOrigin = 1003;

KeyPlan KeyWith(std::vector<CollectiveConfig> arms, uint16_t spacing = 4) {
  return {{Collective::kAllReduce, {80}, Role::kGradientReduce}, kLeaveNcclAlone, std::move(arms), spacing};
}
TablePlan PlanOfSteps() {
  TablePlan plan;
  plan.step_calls = kStepCalls;
  plan.step_origin = kOrigin;
  return plan;
}
// Returns the arm that the key uses in a step, or -1 for none.
int ArmIn(const TablePlan& plan, const KeyPlan& key, uint64_t step) {
  return UseOf(plan, key, false, {0, kOrigin + step * kStepCalls}).arm;
}

TEST(TablePlan, EveryArmIsUsedOnceACycleOfItsSteps) {
  const TablePlan plan = PlanOfSteps();
  const KeyPlan key = KeyWith({kTreeLl, kRingLl, kRingSimple});
  const uint64_t cycle = key.arms.size() * key.spacing;
  std::vector<int> first;
  for (uint64_t number = 0; number < 200; ++number) {
    std::map<int, int> used;
    for (uint64_t step = number * cycle; step < (number + 1) * cycle; ++step) {
      const int arm = ArmIn(plan, key, step);
      ++used[arm];
      if (number == 0 && arm >= 0) first.push_back(arm);
    }
    for (int arm = 0; arm < 3; ++arm) EXPECT_EQ(used[arm], 1) << "cycle " << number;
  }
  EXPECT_EQ(first, (std::vector{0, 1, 2})) << "in the order of the plan at first";
}

TEST(TablePlan, AllCallsOfAStepUseTheSameConfig) {
  const TablePlan plan = PlanOfSteps();
  const KeyPlan key = KeyWith({kTreeLl, kRingLl});
  for (uint64_t step = 0; step < 200; ++step) {
    for (uint32_t call = 0; call < kStepCalls; ++call) {
      const PlannedUse use = UseOf(plan, key, false, {7 * call, kOrigin + step * kStepCalls + call});
      ASSERT_EQ(use.arm, ArmIn(plan, key, step));
      ASSERT_EQ(use.use, use.arm < 0 ? CallUse::kChoice : CallUse::kTrial);
    }
  }
}

TEST(TablePlan, NoArmsBeforeTheOriginOrWithoutSteps) {
  const KeyPlan key = KeyWith({kTreeLl}, 1);
  for (uint64_t call = 0; call < kOrigin; ++call)
    EXPECT_EQ(UseOf(PlanOfSteps(), key, false, {0, call}), PlannedUse{});
  for (uint64_t call = 0; call < 2 * kOrigin; ++call)
    EXPECT_EQ(UseOf(TablePlan{}, key, false, {0, call}), PlannedUse{});
}

TEST(TablePlan, NcclsOwnAsAnArmIsADefaultSample) {
  const TablePlan plan = PlanOfSteps();
  KeyPlan key = KeyWith({kLeaveNcclAlone}, 1);
  key.choice = kTreeLl;
  EXPECT_EQ(UseOf(plan, key, true, {0, kOrigin}), (PlannedUse{CallUse::kDefaultSample, 0}));
}

// If the arm of one key depended on the arm of another, their effects could not be separated.
TEST(TablePlan, KeysDrawIndependently) {
  const TablePlan plan = PlanOfSteps();
  const KeyPlan a = KeyWith({kTreeLl, kRingLl});
  KeyPlan b = a;
  b.key.size_class.index = 81;
  constexpr int kSteps = 40'000;
  int in_a = 0, in_b = 0, in_both = 0;
  for (int step = 8; step < kSteps; ++step) {
    const int arm_a = ArmIn(plan, a, static_cast<uint64_t>(step)),
              arm_b = ArmIn(plan, b, static_cast<uint64_t>(step));
    in_a += arm_a == 0 ? 1 : 0;
    in_b += arm_b == 0 ? 1 : 0;
    in_both += arm_a == 0 && arm_b == 0 ? 1 : 0;
  }
  EXPECT_NEAR(in_a, kSteps / 8, 100);
  EXPECT_NEAR(in_b, kSteps / 8, 100);
  EXPECT_NEAR(in_both, kSteps / 64, 150);
}

// Keys that take part in a common search use one config in the same steps. A key whose collective does not
// have that config keeps its choice.
TEST(TablePlan, CommonArmsAreUsedByAllKeysInTheSameSteps) {
  TablePlan plan = PlanOfSteps();
  plan.common = {kRingLl, kTreeLl};
  plan.common_spacing = 3;
  KeyPlan reduce = KeyWith({});
  KeyPlan gather = {{Collective::kAllGather, {70}, Role::kParameterGather}, kRingLl};
  const KeyPlan apart = gather;
  reduce.joins = gather.joins = true;
  std::map<int, int> used;  // By channels.
  constexpr uint64_t kSteps = 600;
  for (uint64_t step = 0; step < kSteps; ++step) {
    const PlaceInVersion place{0, kOrigin + step * kStepCalls + step % kStepCalls};
    const PlannedUse use = UseOf(plan, reduce, false, place);
    if (use.use == CallUse::kTrial) ++used[use.config.channels];
    EXPECT_EQ(use.arm, -1);
    EXPECT_EQ(UseOf(plan, gather, false, place), PlannedUse{}) << "a choice of its own, and no tree";
    EXPECT_EQ(UseOf(plan, apart, false, place), PlannedUse{});
    EXPECT_EQ(IsTimed(plan, reduce, false, place), IsTimed(plan, gather, true, place));
  }
  EXPECT_EQ(used[kRingLl.channels], static_cast<int>(kSteps / 6));
  EXPECT_EQ(used[kTreeLl.channels], static_cast<int>(kSteps / 6));
  gather.choice = kLeaveNcclAlone;
  for (uint64_t step = 0; step < kSteps; ++step) {
    const PlaceInVersion place{0, kOrigin + step * kStepCalls};
    const PlannedUse use = UseOf(plan, reduce, false, place);
    EXPECT_EQ(UseOf(plan, gather, false, place).use == CallUse::kTrial, use.config == kRingLl) << step;
  }
}

TEST(TablePlan, ALeaderPausesInOneOfSoManyStepsAndIsChallengedInOthers) {
  TablePlan plan = PlanOfSteps();
  plan.common = {kRingLl, kTreeLl};
  plan.common_pause = 8;
  plan.common_spacing = 10;
  KeyPlan key = KeyWith({});
  key.joins = true;
  const auto config_at = [&](uint64_t step) {
    return UseOf(plan, key, false, {0, kOrigin + step * kStepCalls + step % kStepCalls}).config;
  };
  std::map<int, int> used;  // By channels; 0 stands for the key's choice.
  constexpr uint64_t kSteps = 8000;
  for (uint64_t block = 0; block < kSteps / 8; ++block) {
    int pauses = 0;
    for (uint64_t step = 8 * block; step < 8 * block + 8; ++step) {
      ++used[config_at(step).channels];
      pauses += config_at(step).leaves_nccl_alone() ? 1 : 0;
    }
    ASSERT_EQ(pauses, 1) << "block " << block;
  }
  EXPECT_NEAR(used[kTreeLl.channels], kSteps * 7 / 80, 40) << "one step of ten, unless the step is a pause";
  EXPECT_EQ(used[kRingLl.channels], static_cast<int>(kSteps * 7 / 8) - used[kTreeLl.channels]);
  EXPECT_EQ(UseOf(plan, key, false, {0, kOrigin - 1}), PlannedUse{}) << "before the first step";
}

// The cost of timing must not look like an effect of an arm.
TEST(TablePlan, WhichStepsAreTimedDoesNotDependOnArms) {
  const TablePlan plan = PlanOfSteps();
  const KeyPlan key = KeyWith({kTreeLl, kRingLl});
  KeyPlan other = KeyWith({kRingSimple}, 2);
  other.key.collective = Collective::kAllGather;
  int timed = 0;
  for (uint64_t step = 0; step < 12'000; ++step) {
    const PlaceInVersion place{5, kOrigin + step * kStepCalls + 3};
    ASSERT_EQ(IsTimed(plan, key, false, place), IsTimed(plan, other, false, place));
    timed += IsTimed(plan, key, false, place) ? 1 : 0;
  }
  EXPECT_EQ(timed, 1000);
}

TEST(TablePlan, StepsBeginAtTheOriginAndThenEveryStepsCalls) {
  const TablePlan plan = PlanOfSteps();
  for (uint64_t call = 0; call < kOrigin + 100 * kStepCalls; ++call)
    EXPECT_EQ(BeginsStep(plan, call), call >= kOrigin && (call - kOrigin) % kStepCalls == 0) << call;
  EXPECT_FALSE(BeginsStep(TablePlan{}, 0)) << "no arms, no steps";
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
    if (ordinal >= kMiddleCalls) timed += IsTimed(plan, key, true, {ordinal, 0}) ? 1 : 0;
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
    timed += IsTimed(plan, key, true, {ordinal, 0}) ? 1 : 0;
  }
  EXPECT_EQ(samples, 20'000 / static_cast<int>(kSparsePeriod));
  EXPECT_LE(timed, 2 * samples + 1);
}

TEST(TablePlan, NcclsChoiceIsTimedNowAndThenUntilItIsKnown) {
  const TablePlan plan;
  const KeyPlan key = KeyWith({});
  uint32_t timed = 0;
  for (uint32_t ordinal = 0; ordinal < kCalmCalls; ++ordinal)
    timed += IsTimed(plan, key, false, {ordinal, 0}) ? 1 : 0;
  EXPECT_EQ(timed, kCalmCalls / kCalmPeriod);
  for (uint32_t ordinal = kCalmCalls; ordinal < 20'000; ++ordinal)
    timed += IsTimed(plan, key, false, {ordinal, 0}) ? 1 : 0;
  EXPECT_NEAR(timed, 24 + 200, 4) << "then 1 % of the calls";
}

// A step has 40 calls, 4 of them of the key. If samples were at fixed distances, they would always meet the
// same one of the four.
TEST(TablePlan, SamplesMeetEveryPlaceOfAStep) {
  const TablePlan plan;
  KeyPlan key = KeyWith({});
  std::map<uint32_t, int> places;
  for (uint32_t ordinal = kMiddleCalls; ordinal < 40'000; ++ordinal) {
    if (UseOf(plan, key, true, {ordinal, 0}).use == CallUse::kDefaultSample) ++places[ordinal % 4];
  }
  for (uint32_t place = 0; place < 4; ++place) EXPECT_GT(places[place], 25) << place;
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
