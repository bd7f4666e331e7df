// SPDX-License-Identifier: Apache-2.0
// Tests what the guard proposes, step by step, on one or two keys without noise.
#include "src/decision/guard/guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "src/cost_model/cost_model.h"
#include "tests/src/decision/guard/guard_promises.h"
#include "tests/src/decision/guard/one_key_job.h"
#include "tests/src/decision/guard/simulated_job.h"

namespace dynamiccl {
namespace {

TEST(Guard, RevokesAPolicyThatIsTenTimesSlower) {
  OneKey job({kPolicyChoice, {}, {}});
  job.Calls(30, [](const CollectiveConfig&) { return 10 * kNccl; });
  ASSERT_EQ(job.reasons, std::vector{GuardReason::kSlowerThanNccl});
  EXPECT_TRUE(job.revocations[0]);
  EXPECT_TRUE(job.choice().leaves_nccl_alone());
}

TEST(Guard, BeginsWithNcclsChoiceWhereTheFirstPlanSaysSo) {
  GuardOptions options;
  options.first.others_use_policy = false;
  Guard guard(options, [](const TableKey&, Regime) { return KeyKnowledge{kPolicyChoice, {}, {}}; });
  EXPECT_FALSE(guard.plan().others_use_policy);
  // Samples of NCCL's choice are ten times faster than the other calls. That would revoke a choice of the
  // policy, but the other calls are NCCL's as well.
  for (uint64_t number = 0; number < 200; ++number) {
    const CallUse use = number % 2 == 0 ? CallUse::kChoice : CallUse::kDefaultSample;
    GuardedCall call{kKey, use, kLeaveNcclAlone, guard.version()};
    call.number = number;
    call.transfer_ns = number % 2 == 0 ? 10 * kNccl : kNccl;
    call.at_ns = static_cast<int64_t>(number) * 10 * kNccl;
    guard.TakeCall(call);
    EXPECT_FALSE(guard.Tick(call.at_ns)) << "there is no choice to take back";
  }
}

TEST(Guard, KeepsAPolicyThatIsFaster) {
  OneKey job({kPolicyChoice, {}, {}});
  job.Calls(3000, [](const CollectiveConfig&) { return kNccl * 8 / 10; });
  EXPECT_TRUE(job.reasons.empty());
  EXPECT_EQ(job.choice(), kPolicyChoice);
}

TEST(Guard, RevokesAPolicyThatIsTwoPercentSlower) {
  OneKey job({kPolicyChoice, {}, {}});
  job.Calls(40'000, [](const CollectiveConfig&) { return kNccl * 102 / 100; });
  ASSERT_FALSE(job.reasons.empty());
  EXPECT_EQ(job.reasons.back(), GuardReason::kSlowerThanNccl) << "after versions that only doubted it";
  EXPECT_TRUE(job.choice().leaves_nccl_alone());
}

TEST(Guard, AdoptsWhatMakesStepsFaster) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}, {kPolicyChoice, 1.1}}, {}});
  job.Calls(
      600, [](const CollectiveConfig& config) { return config == kGood ? kNccl * 7 / 10 : kNccl * 11 / 10; });
  EXPECT_EQ(job.choice(), kGood);
  EXPECT_EQ(job.reasons.front(), GuardReason::kSearch);
  EXPECT_EQ(std::count(job.reasons.begin(), job.reasons.end(), GuardReason::kAdopt), 1);
  EXPECT_TRUE(job.guard().Settled(kKey));
}

TEST(Guard, ArmsOfProgramsWithOneCallAStepWaitFourStepsForTheRanks) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}}, {}});
  const auto times = [](const CollectiveConfig&) { return kNccl; };
  ASSERT_TRUE(job.CallsUntil(GuardReason::kSearch, 40, times));
  EXPECT_LE(job.guard().plan().step_origin, 45u)
      << "steps from the proposal to the first that may use an arm";
}

// A program that repeats these calls, one every 5 ms. A proposed version is committed at once, and no call
// uses an arm.
class RepeatedCalls {
 public:
  explicit RepeatedCalls(std::vector<TableKey> step) : step_(std::move(step)) {}
  // Returns the number of calls in a step according to the version in use, or 0 if the version has no arms.
  uint32_t StepAfter(uint64_t calls) {
    for (; number_ < calls; ++number_) {
      GuardedCall call{step_[number_ % step_.size()], CallUse::kChoice, kLeaveNcclAlone, guard_.version()};
      call.at_ns = static_cast<int64_t>(number_) * 5'000'000;
      call.number = number_;
      guard_.TakeCall(call);
      if (guard_.Tick(call.at_ns)) guard_.Committed(guard_.version() + 1, call.at_ns);
    }
    return guard_.plan().step_calls;
  }

 private:
  std::vector<TableKey> step_;
  Guard guard_{{}, [](const TableKey&, Regime) { return KeyKnowledge{kLeaveNcclAlone, {{kGood, 0.9}}, {}}; }};
  uint64_t number_ = 0;
};

constexpr TableKey kGather{Collective::kAllGather, {80}, Role::kParameterGather};
constexpr TableKey kScatter{Collective::kReduceScatter, {80}, Role::kGradientReduce};
constexpr TableKey kSmaller{Collective::kAllReduce, {60}, Role::kGradientReduce};

TEST(Guard, EqualGathersOfOneStepAreNoSteps) {
  std::vector<TableKey> step(80, kGather);
  for (int layer = 0; layer < 80; ++layer) step.insert(step.end(), {kGather, kScatter});
  RepeatedCalls sharded(step);
  EXPECT_EQ(sharded.StepAfter(81), 0u) << "gathers may be layers";
  EXPECT_EQ(sharded.StepAfter(16 * 240), 240u);
}

TEST(Guard, EqualBucketsThatWereTakenForStepsGiveWayToTheTrueSteps) {
  std::vector<TableKey> step(80, kKey);
  step.push_back(kSmaller);
  RepeatedCalls buckets(step);
  EXPECT_EQ(buckets.StepAfter(80), 1u);
  EXPECT_EQ(buckets.StepAfter(16 * 81), 81u);
}

TEST(Guard, AnArmThatIsMuchTooSlowGoesWithTheFirstBlock) {
  OneKey job({kLeaveNcclAlone, {{kBad, 0.5}, {kGood, 0.9}}, {}});
  const auto times = [](const CollectiveConfig& config) {
    return config == kGood ? kNccl * 7 / 10 : 8 * kNccl;
  };
  job.Calls(1000, times);
  EXPECT_LE(job.bad_calls, 8);
  EXPECT_NE(std::find(job.reasons.begin(), job.reasons.end(), GuardReason::kArmTooSlow), job.reasons.end());
  EXPECT_EQ(job.choice(), kGood);
}

// Each config makes steps 4 % slower. Trying all would cost more than a job of so few steps may spend.
TEST(Guard, WhatTheExperimentCostsIsLimited) {
  std::vector<ProbeCandidate> slow;
  for (int channels = 1; channels <= 32; ++channels) {
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree})
      slow.push_back({{algorithm, Protocol::kSimple, static_cast<uint8_t>(channels)}, 1});
  }
  OneKey job({kLeaveNcclAlone, slow, {}});
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.3);
  job.noise = [&] { return std::exp(noise(random)); };
  job.Calls(1000, [](const CollectiveConfig&) { return kNccl * 18 / 10; });
  EXPECT_TRUE(job.choice().leaves_nccl_alone());
  const double steps_ns = 1000 * 20e6;
  EXPECT_LE(job.guard().probing_ns(), kProbingCreditSteps * 1.5 * 20e6 + kProbingBudget * steps_ns);
}

// Each config makes a step half as long again. The pacing of trials alone would allow a cost of 20 steps and
// more.
TEST(Guard, TheBudgetEndsWhatThePaceDoesNot) {
  std::vector<ProbeCandidate> slow;
  for (uint8_t channels = 1; channels <= 32; ++channels) {
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree})
      slow.push_back({{algorithm, Protocol::kSimple, channels}, 1});
  }
  OneKey job({kLeaveNcclAlone, slow, {}});
  int uses = 0;
  job.Calls(1000, [&](const CollectiveConfig&) {
    ++uses;
    return kNccl * 11;
  });
  EXPECT_GT(uses, 2);
  // The limit is the credit of steps, the share of 1,000 steps, and one use that had already begun.
  EXPECT_LE(uses * 0.5, kProbingCreditSteps + 1000 * kProbingBudget + 1);
  EXPECT_NE(std::count(job.reasons.begin(), job.reasons.end(), GuardReason::kBudgetSpent), 0);
}

TEST(Guard, AdoptionsKeepTheirSpacing) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}, {kPolicyChoice, 0.95}}, {}});
  job.Calls(3000,
            [](const CollectiveConfig& config) { return config == kGood ? kNccl * 7 / 10 : kNccl * 9 / 10; });
  int64_t last_ns = -kGuardAdoptionSpacingNs;
  for (size_t i = 0; i < job.reasons.size(); ++i) {
    if (job.revocations[i]) continue;
    EXPECT_GE(job.times_ns[i] - last_ns, kGuardAdoptionSpacingNs);
    last_ns = job.times_ns[i];
  }
  EXPECT_EQ(job.choice(), kGood);
}

// Ten keys have configs of different speed; each key takes a few per cent of a step.
TEST(Guard, StepsComeNearTheBestThatThereIs) {
  testing::JobOptions options;
  options.calls_per_step = 160;
  const double calls_of_key = options.calls_per_step / options.keys;
  testing::SimulatedJob job(options);
  job.RunFor(240'000'000'000);
  double chosen = 0, best = 0;
  for (size_t key = 0; key < job.truth().size(); ++key) {
    chosen += job.RatioOf(key, job.ChoiceOf(key)) * job.truth()[key].nccl_ns;
    best += job.truth()[key].BestRatio() * job.truth()[key].nccl_ns;
  }
  const auto step_ns = static_cast<double>(job.guard().steps().step_ns());
  EXPECT_LE(calls_of_key * (chosen - best), 0.05 * step_ns);
}

TEST(Guard, CapturedKeysAreKnownAndNeverTried) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.5}}, {}});
  job.captured = true;
  job.Calls(1000, [](const CollectiveConfig&) { return kNccl; });
  EXPECT_TRUE(job.reasons.empty());
  ASSERT_EQ(job.guard().keys().size(), 1u);
  EXPECT_TRUE(job.guard().keys().begin()->second.captured());
}

// A choice that nobody measured is taken back as soon as some pairs of samples speak against it, whatever the
// noise.
TEST(Guard, AnUnprovenChoiceNeedsNoProofToBeTakenBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    OneKey job({kPolicyChoice, {}, {}});
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(0, 0.05);
    job.noise = [&] { return std::exp(noise(random)); };
    job.Calls(64, [](const CollectiveConfig&) { return kNccl * 106 / 100; });
    EXPECT_TRUE(job.choice().leaves_nccl_alone()) << seed;
  }
}

// An earlier run found the choice good. Now it is 1.2 times as slow as NCCL's, under strong noise. The first
// samples only raise a doubt, and the samples of later versions decide.
TEST(Guard, DoubtBringsDenseSamplesAgainUntilTheyDecide) {
  int jobs_in_doubt = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    OneKey job({kPolicyChoice, {}, kPolicyChoice}, kNoExperiments);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(0, 0.3);
    job.noise = [&] { return std::exp(noise(random)); };
    job.Calls(6000, [](const CollectiveConfig&) { return kNccl * 12 / 10; });
    EXPECT_TRUE(job.choice().leaves_nccl_alone()) << seed;
    ASSERT_FALSE(job.reasons.empty());
    EXPECT_EQ(job.reasons.back(), GuardReason::kSlowerThanNccl) << seed;
    const auto doubts = std::count(job.reasons.begin(), job.reasons.end(), GuardReason::kDoubt);
    EXPECT_LE(doubts, 16) << seed;
    jobs_in_doubt += doubts > 0 ? 1 : 0;
  }
  EXPECT_GE(jobs_in_doubt, 10);
}

bool AnyArms(const testing::SimulatedJob& job) {
  return std::any_of(job.guard().keys().begin(), job.guard().keys().end(),
                     [](const auto& entry) { return entry.second.drawn(); });
}

TEST(Guard, AnExperimentEndsWithTheStepsThatItIsMadeOf) {
  testing::SimulatedJob job({});
  for (int i = 0; i < 60 && !AnyArms(job); ++i) job.RunFor(1'000'000'000);
  ASSERT_TRUE(AnyArms(job));
  job.LoseSteps();
  job.RunFor(30'000'000'000);
  EXPECT_FALSE(AnyArms(job));
  const auto changed = [](const auto& each) { return each.reason == GuardReason::kStepsChanged; };
  EXPECT_TRUE(std::any_of(job.switches().begin(), job.switches().end(), changed));
}

// Each experiment may act as if it were the first, but the job's budget must pay for all of them.
TEST(Guard, AProgramWhoseStepsChangeAgainAndAgainGetsNoNewCredit) {
  testing::JobOptions options;
  options.nothing_to_win = true;
  options.step_ns = 10'000'000;
  testing::SimulatedJob job(options);
  for (int change = 0; change < 40; ++change) {
    job.RunSteps(80);
    job.ReorderCalls();
  }
  const auto begins = [](const auto& each) { return each.reason == GuardReason::kSearch; };
  EXPECT_GE(std::count_if(job.switches().begin(), job.switches().end(), begins), 2);
  EXPECT_LE(job.LossNs(), 0.01 * static_cast<double>(job.now_ns()));
}

// The LSTM says again and again that the job has become another one. The guard believes it a few times only.
TEST(Guard, AJobThatKeepsBecomingAnotherOneGetsCreditAFewTimes) {
  testing::JobOptions options;
  options.nothing_to_win = true;
  options.step_ns = 10'000'000;
  testing::SimulatedJob job(options);
  for (uint32_t change = 0; change < 40; ++change) {
    job.Recognise(change, ZeroStage::kUnknown);
    job.RunSteps(80);
    job.ReorderCalls();
  }
  EXPECT_LE(job.guard().structure().others(), StructureWatch::kMaxChanges);
  EXPECT_LE(job.LossNs(), 0.015 * static_cast<double>(job.now_ns()));
}

// The first arms of this job are so slow that they use up the credit before the good arm has its turn.
TEST(Guard, GoesOnWhenThereIsCreditAgainAfterArmsThatWereTooSlow) {
  int stalled = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    testing::JobOptions options;
    options.seed = seed;
    options.timing = testing::Timing::kPlanned;
    options.keys = 4;
    options.calls_per_step = 24;
    options.step_ns = 12'000'000;
    options.step_noise = 0.05;
    options.nothing_to_win = true;
    options.one_channel_ratio = 0.5;
    testing::SimulatedJob job(options);
    job.RunSteps(200);
    const size_t switches = job.switches().size();
    const GuardReason last = switches == 0 ? GuardReason::kSearch : job.switches().back().reason;
    const bool rests = last == GuardReason::kArmTooSlow || last == GuardReason::kBudgetSpent;
    if (!rests || HasArms(job.guard().plan())) continue;
    ++stalled;
    job.RunSteps(1500);  // Half a per cent of these steps pays for the cost of such an arm beyond the credit.
    ASSERT_GT(job.switches().size(), switches) << seed;
    EXPECT_EQ(job.switches()[switches].reason, GuardReason::kSearch) << seed;
  }
  EXPECT_GT(stalled, 0);
}

TEST(Guard, WithoutStepsNothingIsTried) {
  testing::SimulatedJob job({});
  job.LoseSteps();
  job.RunFor(300'000'000'000);
  EXPECT_TRUE(job.switches().empty());
  EXPECT_EQ(job.trials(), 0u);
}

// A host that runs ahead waits some steps later, so its calls do not seem exposed. The guard must
// nevertheless take back a choice that is slower.
TEST(Guard, TakesBackWhatIsSlowerWhereTheProgramWaitsLate) {
  testing::JobOptions options;
  options.policy_ratio = 1.3;
  options.transfer_times = 8;
  options.trials = false;
  options.waits_late = 3;
  testing::SimulatedJob job(options);
  job.RunFor(300'000'000'000);
  for (size_t key = 0; key < job.truth().size(); ++key)
    EXPECT_TRUE(job.ChoiceOf(key).leaves_nccl_alone()) << key;
}

// Runs one job for each case and kind of noise; docs/results/guard.md has the figures of many.
class GuardPromises : public ::testing::TestWithParam<std::tuple<int, testing::Timing>> {};

TEST_P(GuardPromises, Hold) {
  const auto [index, timing] = GetParam();
  testing::PromiseOptions options;
  options.seeds = 1;
  options.quiet_minutes = 3;
  for (const auto& promise : testing::PromiseCases()[static_cast<size_t>(index)].run(options, timing)) {
    EXPECT_TRUE(promise.kept) << promise.name << ", " << promise.noise << ": " << promise.figures;
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, GuardPromises,
    ::testing::Combine(::testing::Range(0, static_cast<int>(testing::PromiseCases().size())),
                       ::testing::Values(testing::Timing::kAll, testing::Timing::kPlanned)));

}  // namespace
}  // namespace dynamiccl
