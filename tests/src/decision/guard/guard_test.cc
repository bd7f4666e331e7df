// SPDX-License-Identifier: Apache-2.0
// What the guard proposes, step by step, on one or two keys without noise.
#include "src/decision/guard/guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "src/cost_model/cost_model.h"
#include "src/decision/guard/carried_choices.h"
#include "src/decision/guard/learnt_at_site.h"
#include "tests/src/decision/guard/guard_promises.h"
#include "tests/src/decision/guard/simulated_job.h"

namespace dynamiccl {
namespace {

// Its keys weigh too little to take part in experiments, so times of calls alone judge them.
constexpr GuardOptions kNoExperiments{.least_share = 2};

constexpr CollectiveConfig kPolicyChoice{Algorithm::kTree, Protocol::kLL, 2};
constexpr CollectiveConfig kGood{Algorithm::kRing, Protocol::kLL, 4};
constexpr CollectiveConfig kBad{Algorithm::kRing, Protocol::kSimple, 8};
constexpr int64_t kNccl = 1'000'000;
constexpr TableKey kKey{Collective::kAllReduce, {80}, Role::kGradientReduce};

// A communicator whose steps are one call of one key each, and whose versions come about at once.
class OneKey {
 public:
  explicit OneKey(KeyKnowledge knowledge, const GuardOptions& options = {})
      : guard_(options, [=](const TableKey&, Regime) { return knowledge; }) {
    entry_.key = kKey;
    entry_.choice = knowledge.policy_choice;
  }
  // `ns` of a config; NCCL's takes kNccl.
  template <class Times>
  void Calls(int n, Times times) {
    for (int i = 0; i < n; ++i) {
      const bool samples = !entry_.choice.leaves_nccl_alone();
      const PlannedUse use = UseOf(guard_.plan(), entry_, samples, {ordinal_++, number_});
      GuardedCall call{kKey, use.use, entry_.choice, guard_.version(), now_ns_};
      if (use.use == CallUse::kDefaultSample) call.config = kLeaveNcclAlone;
      if (use.use == CallUse::kTrial) call.config = use.config;
      call.transfer_ns = call.config.leaves_nccl_alone() ? kNccl : times(call.config);
      if (noise) call.transfer_ns = static_cast<int64_t>(static_cast<double>(call.transfer_ns) * noise());
      call.transfer_ns *= slower;
      const int64_t took_ns = call.transfer_ns;
      if (!timed) call.transfer_ns = -1;
      call.captured = captured;
      call.number = number_++;
      if (call.config == kBad) ++bad_calls;
      guard_.TakeCall(call);
      now_ns_ += step_ns_of ? step_ns_of(call.config) : 19'000'000 + took_ns;  // it waits
      if (auto proposal = guard_.Tick(now_ns_)) Commit(std::move(*proposal));
    }
  }
  // Calls until the guard has a reason, or so many.
  template <class Times>
  bool CallsUntil(GuardReason reason, int most, Times times) {
    const size_t before = reasons.size();
    for (; most > 0; --most) {
      Calls(1, times);
      if (reasons.size() > before && reasons.back() == reason) return true;
    }
    return false;
  }
  // One call of another key, as the version in use has it.
  void CallOf(const TableKey& key) {
    guard_.TakeCall({key, CallUse::kChoice, ChoiceFor(key), guard_.version(), now_ns_});
  }
  // NCCL's where the version does not list it.
  CollectiveConfig ChoiceFor(const TableKey& key) const {
    for (const KeyPlan& entry : guard_.plan().keys) {
      if (KeyCode(entry.key) == KeyCode(key)) return entry.choice;
    }
    return kLeaveNcclAlone;
  }
  CollectiveConfig choice() const { return entry_.choice; }
  const Guard& guard() const { return guard_; }
  std::vector<GuardReason> reasons;
  std::vector<bool> revocations;
  std::vector<int64_t> times_ns;
  int bad_calls = 0;
  bool captured = false;
  bool timed = true;
  int64_t slower = 1;  // all calls take so many times as long
  std::function<double()> noise;
  // What a step takes with a config in its one call; empty: 19 ms and the call.
  std::function<int64_t(const CollectiveConfig&)> step_ns_of;

 private:
  void Commit(Proposal proposal) {
    reasons.push_back(proposal.reason);
    revocations.push_back(proposal.revocation);
    times_ns.push_back(now_ns_);
    guard_.Committed(guard_.version() + 1, now_ns_);
    for (const KeyPlan& entry : proposal.plan.keys) {
      if (KeyCode(entry.key) == KeyCode(kKey)) entry_ = entry;
    }
    ordinal_ = 0;
  }

  Guard guard_;
  KeyPlan entry_;
  uint32_t ordinal_ = 0;
  uint64_t number_ = 0;
  int64_t now_ns_ = 0;
};

TEST(Guard, RevokesAPolicyThatIsTenTimesSlower) {
  OneKey job({kPolicyChoice, {}, {}});
  job.Calls(30, [](const CollectiveConfig&) { return 10 * kNccl; });
  ASSERT_EQ(job.reasons, std::vector{GuardReason::kSlowerThanNccl});
  EXPECT_TRUE(job.revocations[0]);
  EXPECT_TRUE(job.choice().leaves_nccl_alone());
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

// Each config makes steps 4 % slower: together they cost more than a job of so few steps may pay.
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

// Each config makes a step half as long again, so the pace alone would let them cost 20 steps and more.
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
  // The credit of steps and the share of 1,000 steps, and a use that was on its way.
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

// Ten keys that vary at once, each of them a few per cent of a step.
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

TEST(Guard, WhatAnEarlierRunConfirmedIsUsedWithoutTrials) {
  OneKey job({kLeaveNcclAlone, {{kBad, 0.5}}, kGood});
  job.Calls(2000, [](const CollectiveConfig&) { return kNccl * 7 / 10; });
  EXPECT_EQ(job.reasons, (std::vector{GuardReason::kConfirmed, GuardReason::kSearch}));
  EXPECT_EQ(job.choice(), kGood);
  EXPECT_EQ(job.bad_calls, 0);
  ASSERT_EQ(job.guard().plan().keys.size(), 1u);
  EXPECT_EQ(job.guard().plan().keys[0].arms, std::vector{kLeaveNcclAlone}) << "it stays compared with NCCL's";
}

// Its calls take longer alone, but whole steps are shorter with it: steps judge it in a later run too.
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

// A release that gives no times: whole steps show that they take a fifth longer, and the search begins anew.
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

// What steps showed, times of calls name: the search goes on, and belongs to the state that they name.
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

// A later run begins with it when the fabric is again as it was.
TEST(Guard, WhatWasSettledOutlivesAChangeOfTheFabric) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}}, {}});
  int64_t factor = 1;
  const auto times = [&](const CollectiveConfig& config) {
    return (config == kGood ? 700'000 : 1'000'000) * factor;
  };
  job.Calls(500, times);
  ASSERT_EQ(job.choice(), kGood);
  factor = 2;
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

TEST(Guard, WhatIsCarriedGoesWithTheFabricThatItWasSettledOn) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}, {kPolicyChoice, 1.1}}, {}});
  job.Calls(500, kGoodIsFaster);
  ASSERT_EQ(job.ChoiceFor(Above(2)), kGood);
  // Only kGood's calls can be slower here: NCCL's always take kNccl.
  ASSERT_TRUE(job.CallsUntil(GuardReason::kRegimeChanged, 1000,
                             [](const CollectiveConfig& config) { return 2 * kGoodIsFaster(config); }));
  EXPECT_TRUE(job.ChoiceFor(Above(2)).leaves_nccl_alone());
}

// What an earlier run confirmed stays in use on a changed fabric while steps compare it with NCCL's own.
TEST(Guard, AConfirmedChoiceIsProvedAgainOnAChangedFabric) {
  for (const bool still_better : {true, false}) {
    OneKey job({kPolicyChoice, {}, kPolicyChoice});
    int64_t ns = 800'000;
    job.Calls(500, [&](const CollectiveConfig&) { return ns; });
    ns = 1'600'000;
    job.step_ns_of = [&](const CollectiveConfig& config) {
      return (config == kPolicyChoice) == still_better ? 18'000'000 : 20'000'000;
    };
    ASSERT_TRUE(job.CallsUntil(GuardReason::kRegimeChanged, 60, [&](const CollectiveConfig&) { return ns; }));
    EXPECT_EQ(job.choice(), kPolicyChoice) << "nothing speaks against it yet";
    job.Calls(200, [&](const CollectiveConfig&) { return ns; });
    EXPECT_EQ(job.choice(), still_better ? kPolicyChoice : kLeaveNcclAlone) << still_better;
  }
}

// The job may end right after the adoption, before the key's own steps say anything.
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

// What nobody measured goes as soon as some pairs speak against it, whatever the noise.
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

// 1.2x slower in strong noise than an earlier run found it: the first samples only raise a doubt, and those
// of the versions that follow decide.
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

// Each of its experiments may believe that it is the first, but the job pays for all of them.
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

TEST(Guard, WithoutStepsNothingIsTried) {
  testing::SimulatedJob job({});
  job.LoseSteps();
  job.RunFor(300'000'000'000);
  EXPECT_TRUE(job.switches().empty());
  EXPECT_EQ(job.trials(), 0u);
}

// A host that runs ahead waits steps later, as if it did not wait: what is slower is taken back all the same.
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

// A link of another speed, a tree's and a ring's shape: NCCL's own choice is no candidate, and there are five
// and the neighbours.
TEST(ProbeCandidates, AreTheBestOfThePriorAndNeighboursInChannels) {
  CostModelInput input;
  input.fabric = {8, 2, 16, {1, 100}, {5, 20}};
  input.constants = NcclHopperConstants(2);
  const ConfigQuestion question{Collective::kAllReduce, 1 << 20, NcclConfigs(Collective::kAllReduce)};
  const auto candidates = ProbeCandidates(nullptr, input, question);
  ASSERT_GE(candidates.size(), kBestOfPrior);
  EXPECT_LE(candidates.size(), kBestOfPrior + 2);
  const CollectiveConfig nccl = ConfigContext(input, question).default_config();
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_NE(candidates[i].config, nccl);
    EXPECT_GT(candidates[i].predicted, 0);
    EXPECT_GE(candidates[i].predicted, candidates[i == 0 ? 0 : i - 1].predicted);
  }
}

// One job of every case and kind of noise; docs/results/guard.md has the figures of many.
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
