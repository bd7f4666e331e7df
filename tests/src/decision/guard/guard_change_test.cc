// SPDX-License-Identifier: Apache-2.0
// Tests what the guard keeps: choices that an earlier run confirmed, knowledge about nearby sizes, and
// knowledge that outlives a change of the fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "src/base/statistics.h"
#include "src/decision/guard/carried_choices.h"
#include "src/decision/guard/learnt_at_site.h"
#include "tests/src/decision/guard/one_key_job.h"
#include "tests/src/decision/guard/simulated_job.h"

namespace dynamiccl {
namespace {

TEST(Guard, WhatAnEarlierRunConfirmedIsUsedWithoutTrials) {
  OneKey job({kLeaveNcclAlone, {{kBad, 0.5}}, kGood});
  job.Calls(2000, [](const CollectiveConfig&) { return kNccl * 7 / 10; });
  EXPECT_EQ(job.reasons, (std::vector{GuardReason::kConfirmed, GuardReason::kSearch}));
  EXPECT_EQ(job.choice(), kGood);
  EXPECT_EQ(job.bad_calls, 0);
  ASSERT_EQ(job.guard().plan().keys.size(), 1u);
  EXPECT_EQ(job.guard().plan().keys[0].arms, std::vector{kLeaveNcclAlone}) << "it stays compared with NCCL's";
}

// With the confirmed config single calls take longer, but whole steps are shorter. So steps must judge it in
// a later run too.
TEST(Guard, WhatAnEarlierRunConfirmedIsJudgedBySteps) {
  for (const bool hidden : {true, false}) {
    OneKey job({kLeaveNcclAlone, {}, kGood});
    job.step_ns_of = [&](const CollectiveConfig& config) {
      return (config == kGood) == hidden ? 18'000'000 : 20'000'000;
    };
    job.Calls(1000, [](const CollectiveConfig&) { return kNccl * 102 / 100; });
    EXPECT_EQ(job.choice(), hidden ? kGood : kLeaveNcclAlone) << hidden;
  }
}

TEST(Guard, WhatIsExpectedIsInUseBeforeTheKeysFirstCall) {
  Guard guard({}, [](const TableKey&, Regime) { return KeyKnowledge{kPolicyChoice, {{kBad, 0.5}}, kGood}; });
  guard.Expect(kKey, kGood);
  const auto proposal = guard.Tick(0);
  ASSERT_TRUE(proposal);
  EXPECT_EQ(proposal->reason, GuardReason::kConfirmed);
  ASSERT_EQ(proposal->plan.keys.size(), 1u) << "of the sizes near it too an earlier run knows more";
  EXPECT_EQ(proposal->plan.keys[0].choice, kGood);
  EXPECT_TRUE(proposal->carried.empty());
  guard.Committed(2, 0);
  EXPECT_TRUE(guard.Settled(kKey));
  EXPECT_FALSE(guard.Tick(60'000'000'000)) << "nothing is tried on it, and it is not asked for again";
}

TEST(Guard, AChangedFabricRevokesFirst) {
  OneKey job({kPolicyChoice, {{kGood, 0.9}}, kPolicyChoice}, kNoExperiments);
  int64_t factor = 1;
  const auto times = [&](const CollectiveConfig& config) {
    return (config == kGood ? 500'000 : 800'000) * factor;
  };
  job.Calls(500, times);
  ASSERT_TRUE(job.reasons.empty());
  factor = 2;
  job.Calls(40, times);
  ASSERT_FALSE(job.reasons.empty());
  EXPECT_TRUE(job.revocations[0]);
  EXPECT_TRUE(job.choice().leaves_nccl_alone());
  ASSERT_EQ(job.guard().plan().keys.size(), 1u);
}

// The release gives no times of calls. Whole steps show that they take a fifth longer, and the search begins
// again.
TEST(Guard, StepsShowAChangeWhereNoCallIsTimed) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}}, {}});
  job.timed = false;
  const auto alike = [](const CollectiveConfig&) { return kNccl; };
  job.Calls(400, alike);
  ASSERT_EQ(job.choice(), kLeaveNcclAlone) << "nothing can be won";
  job.slower = 5;
  const auto good_is_faster = [](const CollectiveConfig&) { return kNccl / 3; };
  ASSERT_TRUE(job.CallsUntil(GuardReason::kPaceChanged, 40, good_is_faster));
  EXPECT_TRUE(job.CallsUntil(GuardReason::kAdopt, 120, good_is_faster));
  EXPECT_EQ(job.choice(), kGood);
  EXPECT_EQ(std::count(job.reasons.begin(), job.reasons.end(), GuardReason::kPaceChanged), 1)
      << "an adoption is no change of the fabric";
}

// Calls take four times as long as NCCL's cost model says, so a gain from kGood is expected. The version that
// answers the change has forgotten all times, so the search must wait for new ones.
TEST(Guard, AfterAChangeASearchBeginsWithWhatItsNewTimesMakeItExpect) {
  GuardOptions options;
  options.expected = [](const EffectQuestion& question) {
    const bool is_good = question.subject.protocol == kGood.protocol && question.circumstances.slowness > 1;
    return is_good ? std::optional(Expectation{{-0.3, 0.1}, ExpectedFrom::kPolicy}) : std::nullopt;
  };
  OneKey job({kLeaveNcclAlone, {{kBad, 0.8}, {kGood, 0.9}}, {}, kNccl}, options);
  const auto alike = [](const CollectiveConfig&) { return kNccl; };
  job.Calls(400, alike);
  ASSERT_EQ(job.choice(), kLeaveNcclAlone) << "nothing can be won";
  job.slower = 4;
  const auto good_is_faster = [](const CollectiveConfig& config) {
    return config == kGood ? kNccl / 3 : kNccl;
  };
  ASSERT_TRUE(job.CallsUntil(GuardReason::kPaceChanged, 60, good_is_faster) ||
              job.CallsUntil(GuardReason::kRegimeChanged, 1, good_is_faster));
  ASSERT_TRUE(job.CallsUntil(GuardReason::kSearch, 60, good_is_faster));
  EXPECT_EQ(job.guard().plan().common, std::vector{kGood}) << "it is the only arm";
  EXPECT_GT(job.guard().plan().common_pause, 0) << "most steps use it";
}

// Steps showed a change first, and times of calls then name the new state. The search goes on, and its
// results belong to the named state.
TEST(Guard, TimesThatConfirmWhatStepsShowedBeginNoOtherSearch) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}}, {}});
  const auto alike = [](const CollectiveConfig&) { return kNccl; };
  job.Calls(400, alike);
  job.timed = false;
  job.slower = 5;
  ASSERT_TRUE(job.CallsUntil(GuardReason::kPaceChanged, 40, alike));
  job.timed = true;
  job.Calls(60, alike);
  EXPECT_EQ(job.guard().fabric(), Regime::kDegradedLink);
  EXPECT_EQ(std::count(job.reasons.begin(), job.reasons.end(), GuardReason::kRegimeChanged), 0);
}

// Makes steps a tenth shorter with kGood, and 9 % longer when calls take twice as long.
auto StepsFeelCalls(const OneKey& job) {
  return [&job](const CollectiveConfig& config) {
    return int64_t{config == kGood ? 18'000'000 : 20'000'000} * (job.slower > 1 ? 109 : 100) / 100;
  };
}

// A later run begins with the confirmed choice when the fabric is as it was before.
TEST(Guard, WhatWasSettledOutlivesAChangeOfTheFabric) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}}, {}});
  job.step_ns_of = StepsFeelCalls(job);
  const auto times = [](const CollectiveConfig& config) { return config == kGood ? 700'000 : 1'000'000; };
  job.Calls(500, times);
  ASSERT_EQ(job.choice(), kGood);
  job.slower = 2;
  ASSERT_TRUE(job.CallsUntil(GuardReason::kRegimeChanged, 600, times));
  ASSERT_FALSE(job.guard().Settled(kKey));
  const std::vector<SettledKey> settled = job.guard().AllSettled();
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].fabric, Regime::kNormal);
  EXPECT_EQ(settled[0].choice, kGood);
  EXPECT_GT(settled[0].pairs, 0u);
  const SiteStore store = LearntAtSite(job.guard(), {}, 1000);
  EXPECT_EQ(ConfirmedAtSite(store, {}, kKey, Regime::kNormal, 1000), kGood);
  EXPECT_FALSE(ConfirmedAtSite(store, {}, kKey, job.guard().fabric(), 1000));
}

constexpr TableKey Above(int classes) {
  return {kKey.collective, {static_cast<uint8_t>(kKey.size_class.index + classes)}, kKey.role};
}
constexpr auto kGoodIsFaster = [](const CollectiveConfig& config) {
  return config == kGood ? kNccl * 7 / 10 : kNccl * 11 / 10;
};

TEST(Guard, WhatASearchSettledHoldsForSizesNearItBeforeTheirFirstCall) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}, {kPolicyChoice, 1.1}}, {}});
  ASSERT_TRUE(job.CallsUntil(GuardReason::kSearch, 200, kGoodIsFaster));
  EXPECT_TRUE(job.ChoiceFor(Above(1)).leaves_nccl_alone()) << "nothing is settled yet";
  ASSERT_TRUE(job.CallsUntil(GuardReason::kAdopt, 300, kGoodIsFaster));
  job.Calls(100, kGoodIsFaster);
  EXPECT_EQ(job.ChoiceFor(Above(1)), kGood);
  EXPECT_EQ(job.ChoiceFor(Above(kCarriedClasses)), kGood);
  EXPECT_TRUE(job.ChoiceFor(Above(kCarriedClasses + 1)).leaves_nccl_alone());
  EXPECT_EQ(job.ChoiceFor(Above(-kCarriedClasses)), kGood);
  EXPECT_EQ(job.guard().keys().size(), 1u) << "no key without a call is guarded";
  job.CallOf(Above(4));
  EXPECT_EQ(job.guard().keys().at(KeyCode(Above(4))).choice(), kGood);
  EXPECT_FALSE(job.guard().Settled(Above(4))) << "it is searched like any other";
}

TEST(Guard, WhatASearchSettledHoldsForOtherRolesOfTheSize) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}, {kPolicyChoice, 1.1}}, {}});
  ASSERT_TRUE(job.CallsUntil(GuardReason::kAdopt, 600, kGoodIsFaster));
  job.Calls(100, kGoodIsFaster);
  EXPECT_EQ(job.ChoiceFor({kKey.collective, kKey.size_class, Role::kUnknown}), kGood);
  EXPECT_EQ(job.ChoiceFor({kKey.collective, kKey.size_class, Role::kActivation}), kGood);
  EXPECT_TRUE(job.ChoiceFor({Collective::kAllGather, kKey.size_class, kKey.role}).leaves_nccl_alone());
}

// The job of stage 2 becomes one of stage 3 with calls of the same sizes.
TEST(Guard, AJobThatBecomesAnotherOneIsSearchedAgain) {
  for (const bool lstm_says_so : {true, false}) {
    testing::JobOptions options;
    options.keys = 4;
    options.calls_per_step = 16;
    testing::SimulatedJob job(options);
    job.Recognise(0, ZeroStage::kStage2);
    job.RunSteps(3000);
    ASSERT_FALSE(job.guard().AllSettled().empty());
    job.ReorderCalls();
    job.ChangeFabric(1, 1, true);
    if (lstm_says_so) job.Recognise(1, ZeroStage::kStage3);
    const auto before = static_cast<std::ptrdiff_t>(job.switches().size());
    job.RunSteps(1500);
    EXPECT_EQ(job.guard().structure().others(), lstm_says_so ? 1 : 0);
    const bool adopts = std::any_of(job.switches().begin() + before, job.switches().end(),
                                    [](const auto& each) { return each.reason == GuardReason::kAdopt; });
    EXPECT_EQ(adopts, lstm_says_so);
  }
}

bool AdoptedSince(const testing::SimulatedJob& job, size_t switches) {
  return std::any_of(job.switches().begin() + static_cast<std::ptrdiff_t>(switches), job.switches().end(),
                     [](const auto& each) { return each.reason == GuardReason::kAdopt; });
}

// Returns a job with steps of 11 ms and three keys, in which no config is faster than NCCL's choice.
testing::JobOptions JobOnTwoRails(uint64_t seed) {
  testing::JobOptions options;
  options.seed = seed;
  options.keys = 3;
  options.class_step = 2;
  options.calls_per_step = 16;
  options.timing = testing::Timing::kPlanned;
  options.transfer_times = 0.8;
  options.step_ns = 11'000'000;
  options.step_noise = 0.05;
  options.setup_ns = 3'000'000;
  options.nothing_to_win = true;
  options.one_channel_ratio = 1.05;
  return options;
}

// Trials of bad configs have spent the credit when a rail fails. With one rail less, these trials cost even
// more.
TEST(Guard, ASpentBudgetIsRenewedWhenARailFails) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    testing::SimulatedJob job(JobOnTwoRails(seed));
    job.RunSteps(120);
    const size_t before = job.switches().size();
    std::vector<testing::TrueKey> keys = job.truth();
    for (testing::TrueKey& key : keys) key.configs[4].ratio = 0.35;
    job.ChangeKeys(keys);
    job.ChangeFabric(2.6, 1, false);
    job.RunSteps(280);
    EXPECT_TRUE(AdoptedSince(job, before)) << "seed " << seed;
  }
}

// Returns the nanoseconds of a job's transfers up to now, and those of the same calls with NCCL's choice.
std::pair<double, double> TransfersOf(const testing::SimulatedJob& job) {
  std::pair<double, double> sums;
  for (const testing::KeyHistory& key : job.history()) sums.first += key.time_ns, sums.second += key.nccl_ns;
  return sums;
}

// A rail fails while all keys use NCCL's choice, and then one channel is best. From the 100th step after the
// failure on, few steps use anything else, although configs of other pairs challenge it.
TEST(Guard, ALeaderThatIsSurelyFasterIsUsedInNearlyAllSteps) {
  constexpr double kBest = 0.35;
  std::vector<double> over_best;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    testing::SimulatedJob job(JobOnTwoRails(seed));
    job.RunSteps(120);
    std::vector<testing::TrueKey> keys = job.truth();
    for (testing::TrueKey& key : keys) {
      for (auto& [config, predicted, ratio, exposed, of_nccls] : key.configs) {
        if (config.channels == 1)
          ratio = kBest + 0.1 * static_cast<int>(config.protocol != Protocol::kSimple);
      }
    }
    job.ChangeKeys(keys);
    job.ChangeFabric(2.6, 1, false);
    job.RunSteps(100);
    const auto before = TransfersOf(job);
    const int64_t begin_ns = job.now_ns();
    job.RunSteps(50);
    const auto after = TransfersOf(job);
    const double took = static_cast<double>(job.now_ns() - begin_ns);
    const double computed = took - (after.first - before.first);
    over_best.push_back(took / (computed + kBest * (after.second - before.second)));
  }
  EXPECT_LT(Median(over_best), 1.075) << "1.12 if one step of eight pauses and one of nine has a challenger";
}

// A rail fails while all keys use a config that an earlier run found. Now another config is best, and all
// keys search together. If each key searched alone, 29 of the 60 jobs would find it within 250 steps.
TEST(Guard, KeysThatUseOneConfigSearchTogetherWhenARailFails) {
  constexpr size_t kUsed = 8, kBest = 4;
  int found = 0;
  for (const double left : {0.6, 0.8, 0.95}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      testing::JobOptions options = JobOnTwoRails(seed);
      const testing::SimulatedJob drawn(options);
      for (const testing::TrueKey& key : drawn.truth())
        options.confirmed[KeyCode(key.key)] = key.configs[kUsed].config;
      testing::SimulatedJob job(options);
      std::vector<testing::TrueKey> keys = job.truth();
      for (testing::TrueKey& key : keys) key.configs[kUsed].ratio = 0.6;
      job.ChangeKeys(keys);
      job.RunSteps(120);
      for (testing::TrueKey& key : keys) key.configs[kBest].ratio = 0.35, key.configs[kUsed].ratio = left;
      job.ChangeKeys(keys);
      job.ChangeFabric(2.6, 1, false);
      job.RunSteps(250);
      size_t with_best = 0;
      for (size_t k = 0; k < keys.size(); ++k) with_best += job.ChoiceOf(k) == keys[k].configs[kBest].config;
      found += with_best == keys.size() ? 1 : 0;
    }
  }
  EXPECT_GE(found, 45) << "of 60";
}

TEST(Guard, WhatIsCarriedGoesWithTheFabricThatItWasSettledOn) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}, {kPolicyChoice, 1.1}}, {}});
  job.step_ns_of = StepsFeelCalls(job);
  job.Calls(500, kGoodIsFaster);
  ASSERT_EQ(job.ChoiceFor(Above(2)), kGood);
  job.slower = 2;
  ASSERT_TRUE(job.CallsUntil(GuardReason::kRegimeChanged, 1000, kGoodIsFaster));
  EXPECT_TRUE(job.ChoiceFor(Above(2)).leaves_nccl_alone());
}

// A choice that an earlier run confirmed stays in use on a changed fabric. Steps compare it with NCCL's
// choice meanwhile.
TEST(Guard, AConfirmedChoiceIsProvedAgainOnAChangedFabric) {
  for (const bool still_better : {true, false}) {
    OneKey job({kPolicyChoice, {}, kPolicyChoice});
    int64_t ns = 800'000;
    job.Calls(700, [&](const CollectiveConfig&) { return ns; });
    ns = 1'600'000;
    job.step_ns_of = [&](const CollectiveConfig& config) {
      return config == kPolicyChoice ? 21'400'000 : still_better ? 23'000'000 : 19'500'000;
    };
    ASSERT_TRUE(job.CallsUntil(GuardReason::kRegimeChanged, 60, [&](const CollectiveConfig&) { return ns; }));
    EXPECT_EQ(job.choice(), kPolicyChoice) << "nothing speaks against it yet";
    job.Calls(100, [&](const CollectiveConfig&) { return ns; });
    int of_choice = 0;
    job.Calls(100, [&](const CollectiveConfig& config) { return of_choice += config == kPolicyChoice, ns; });
    EXPECT_EQ(job.choice(), still_better ? kPolicyChoice : kLeaveNcclAlone) << still_better;
    if (still_better) {
      EXPECT_GE(of_choice, 90) << "what is proved gives way to NCCL's choice in few steps";
    }
  }
}

// A call that runs beside computation may take twice as long without any step becoming longer. The search
// goes on.
TEST(Guard, WhatNoStepFeelsIsNoChangeOfTheFabric) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}}, {}});
  job.step_ns_of = [](const CollectiveConfig& config) { return config == kGood ? 18'000'000 : 20'000'000; };
  const auto alike = [](const CollectiveConfig&) { return kNccl; };
  job.Calls(500, alike);
  ASSERT_EQ(job.choice(), kGood);
  for (int round = 0; round < 10; ++round) {
    job.slower = round % 2 == 0 ? 2 : 1;
    job.Calls(100, alike);
  }
  EXPECT_EQ(job.choice(), kGood);
  EXPECT_EQ(job.guard().fabric(), Regime::kNormal);
  for (const GuardReason reason : {GuardReason::kRegimeChanged, GuardReason::kPaceChanged})
    EXPECT_EQ(std::count(job.reasons.begin(), job.reasons.end(), reason), 0);
}

// The job may end right after the adoption, before steps show the effect of the key itself.
TEST(Guard, WhatAllKeysAdoptTogetherIsKeptAtOnce) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}}, {}});
  const auto times = [](const CollectiveConfig&) { return kNccl / 10; };
  ASSERT_TRUE(job.CallsUntil(GuardReason::kAdopt, 2000, times));
  const std::vector<SettledKey> settled = job.guard().AllSettled();
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].choice, kGood);
  ASSERT_TRUE(settled[0].ratio);
  EXPECT_LT(*settled[0].ratio, 0.98);
  EXPECT_GT(settled[0].pairs, 0u);
}

}  // namespace
}  // namespace dynamiccl
