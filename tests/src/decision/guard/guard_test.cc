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

constexpr CollectiveConfig kPolicyChoice{Algorithm::kTree, Protocol::kLL, 2};
constexpr CollectiveConfig kGood{Algorithm::kRing, Protocol::kLL, 4};
constexpr CollectiveConfig kBad{Algorithm::kRing, Protocol::kSimple, 8};
constexpr int64_t kNccl = 1'000'000;
constexpr TableKey kKey{Collective::kAllReduce, {80}, Role::kGradientReduce};

// A communicator with calls of one key whose versions come about at once.
class OneKey {
 public:
  explicit OneKey(KeyKnowledge knowledge) : guard_({}, [=](const TableKey&, Regime) { return knowledge; }) {
    entry_.key = kKey;
    entry_.choice = knowledge.policy_choice;
  }
  // `ns` of a config; NCCL's takes kNccl.
  template <class Times>
  void Calls(int n, Times times) {
    for (int i = 0; i < n; ++i) {
      const bool samples = !entry_.choice.leaves_nccl_alone();
      const PlannedUse use = UseOf(guard_.plan(), entry_, samples, {ordinal_++, 0});
      GuardedCall call{kKey, use.use, entry_.choice, guard_.version(), now_ns_};
      if (use.use == CallUse::kDefaultSample) call.config = kLeaveNcclAlone;
      if (use.use == CallUse::kTrial) call.config = entry_.trials[static_cast<size_t>(use.trial)];
      call.transfer_ns = call.config.leaves_nccl_alone() ? kNccl : times(call.config);
      if (noise) call.transfer_ns = static_cast<int64_t>(static_cast<double>(call.transfer_ns) * noise());
      call.captured = captured;
      if (call.config == kBad) ++bad_calls;
      guard_.TakeCall(call);
      now_ns_ += 19'000'000 + call.transfer_ns;  // it waits
      if (auto proposal = guard_.Tick(now_ns_)) Commit(std::move(*proposal));
    }
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
  std::function<double()> noise;

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

TEST(Guard, AdoptsTheTrialThatIsBetter) {
  OneKey job({kLeaveNcclAlone, {{kGood, 0.9}, {kPolicyChoice, 1.1}}, {}});
  job.Calls(
      400, [](const CollectiveConfig& config) { return config == kGood ? kNccl * 7 / 10 : kNccl * 11 / 10; });
  EXPECT_EQ(job.choice(), kGood);
  EXPECT_EQ(job.reasons.front(), GuardReason::kSearch);
  EXPECT_EQ(job.reasons.back(), GuardReason::kAdopt);
  EXPECT_TRUE(job.guard().Settled(kKey));
}

// It costs more than a job of so few calls may pay: all trials end, and go on when there is credit again.
TEST(Guard, ATrialThatCostsMoreThanTheCreditEndsAllUntilThereIsSomeAgain) {
  OneKey job({kLeaveNcclAlone, {{kBad, 0.9}, {kGood, 0.9}}, {}});
  const auto times = [](const CollectiveConfig& config) {
    return config == kGood ? kNccl * 7 / 10 : 5 * kNccl;
  };
  job.Calls(300, times);
  ASSERT_EQ(job.reasons, (std::vector{GuardReason::kSearch, GuardReason::kBudgetSpent}));
  EXPECT_TRUE(job.guard().plan().keys.at(0).trials.empty());
  job.Calls(1700, times);
  EXPECT_EQ(job.bad_calls, 1);
  EXPECT_EQ(job.choice(), kGood);
}

TEST(Guard, ATrialThatIsFarTooSlowIsNeverRepeated) {
  OneKey job({kLeaveNcclAlone, {{kBad, 0.5}, {kGood, 0.9}}, {}});
  job.Calls(2000, [](const CollectiveConfig& config) { return kNccl * (config == kGood ? 7 : 16) / 10; });
  EXPECT_EQ(job.bad_calls, 1);
  EXPECT_NE(std::find(job.reasons.begin(), job.reasons.end(), GuardReason::kTrialBarred), job.reasons.end());
  EXPECT_EQ(job.choice(), kGood);
}

TEST(Guard, AdoptionsComeAtMostOnceInFiveSeconds) {
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

// Versions that only take trials out come in between: what was shown to be better is adopted all the same.
TEST(Guard, AWinnerIsNotLostToAVersionThatComesBeforeItsAdoption) {
  testing::JobOptions options;
  options.calls_per_step = 160;  // many calls between two adoptions
  testing::SimulatedJob job(options);
  job.RunFor(120'000'000'000);
  for (size_t key = 0; key < job.truth().size(); ++key) {
    double best = 1;
    for (const ProbeCandidate& each : job.guard().keys().at(KeyCode(job.truth()[key].key)).candidates())
      best = std::min(best, job.RatioOf(key, each.config));
    EXPECT_LE(job.RatioOf(key, job.ChoiceOf(key)), best < 0.9 ? 1.05 * best : 1.0) << key;
  }
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
  EXPECT_EQ(job.reasons, std::vector{GuardReason::kConfirmed});
  EXPECT_EQ(job.choice(), kGood);
  EXPECT_EQ(job.bad_calls, 0);
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

TEST(Guard, AChangedFabricRevokesFirstAndSearchesInTheSameVersion) {
  OneKey job({kPolicyChoice, {{kGood, 0.9}}, kPolicyChoice});
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

// A trial that did no harm before needs no pause on the changed fabric; one that was barred does.
TEST(Guard, TrialsKnownFromBeforeAChangeComeFirst) {
  constexpr CollectiveConfig kFair{Algorithm::kRing, Protocol::kLL128, 4};
  OneKey job({kLeaveNcclAlone, {{kBad, 0.9}, {kFair, 0.95}, {kGood, 0.95}}, {}});
  int64_t factor = 1;
  const auto times = [&](const CollectiveConfig& config) {
    const int64_t ns = config == kGood ? 700'000 : config == kBad ? 5'000'000 : 1'000'000;
    return ns * factor;
  };
  job.Calls(1600, times);
  ASSERT_EQ(job.choice(), kGood);
  factor = 2;
  for (int i = 0; i < 100 && job.reasons.back() != GuardReason::kRegimeChanged; ++i) job.Calls(1, times);
  ASSERT_EQ(job.reasons.back(), GuardReason::kRegimeChanged);
  const KeyPlan& entry = job.guard().plan().keys.at(0);
  EXPECT_EQ(entry.trials, (std::vector{kFair, kGood, kBad}));
  EXPECT_EQ(entry.known_trials, 2);
  EXPECT_TRUE(entry.first_round);
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
  job.Calls(60, times);
  ASSERT_EQ(job.reasons.back(), GuardReason::kRegimeChanged);
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
  job.Calls(100, kGoodIsFaster);
  ASSERT_EQ(job.reasons.back(), GuardReason::kSearch);
  EXPECT_TRUE(job.ChoiceFor(Above(1)).leaves_nccl_alone()) << "nothing is settled yet";
  job.Calls(300, kGoodIsFaster);
  ASSERT_EQ(job.reasons.back(), GuardReason::kAdopt);
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
  for (int i = 0; i < 200 && job.reasons.back() != GuardReason::kRegimeChanged; ++i)
    job.Calls(1, [](const CollectiveConfig& config) { return 2 * kGoodIsFaster(config); });
  ASSERT_EQ(job.reasons.back(), GuardReason::kRegimeChanged);
  EXPECT_TRUE(job.ChoiceFor(Above(2)).leaves_nccl_alone());
}

// What was the choice may be the best on the changed fabric too: it is a candidate like any other.
TEST(Guard, TriesTheFormerChoiceOnAChangedFabric) {
  OneKey job({kPolicyChoice, {{kPolicyChoice, 0.8}, {kGood, 0.9}}, kPolicyChoice});
  int64_t factor = 1;
  const auto times = [&](const CollectiveConfig& config) {
    return (config == kPolicyChoice ? 800'000 : 1'000'000) * factor;
  };
  job.Calls(500, times);
  factor = 2;
  for (int i = 0; i < 60 && job.reasons.empty(); ++i) job.Calls(1, times);
  ASSERT_FALSE(job.reasons.empty());
  ASSERT_EQ(job.reasons[0], GuardReason::kRegimeChanged);
  ASSERT_EQ(job.guard().plan().keys.size(), 1u);
  EXPECT_EQ(job.guard().plan().keys[0].trials, (std::vector{kPolicyChoice, kGood}));
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
    OneKey job({kPolicyChoice, {}, kPolicyChoice});
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

bool AnyInBlocks(const testing::SimulatedJob& job) {
  return std::any_of(job.guard().keys().begin(), job.guard().keys().end(),
                     [](const auto& entry) { return entry.second.in_blocks(); });
}

testing::JobOptions HiddenKeys() {
  testing::JobOptions options;
  options.policy_ratio = 0.5;
  options.transfer_times = 8;
  options.hidden_keys = 5;
  return options;
}

TEST(Guard, BlocksEndWithTheStepsThatTheyAreMadeOf) {
  testing::SimulatedJob job(HiddenKeys());
  for (int i = 0; i < 900 && !AnyInBlocks(job); ++i) job.RunFor(1'000'000'000);
  ASSERT_TRUE(AnyInBlocks(job));
  job.LoseSteps();
  job.RunFor(30'000'000'000);
  EXPECT_FALSE(AnyInBlocks(job));
  for (const testing::TrueKey& key : job.truth())
    EXPECT_EQ(job.guard().CriticalityOf(key.key), Criticality::kUnknown);
}

TEST(Guard, BlocksEndWithAnAnswer) {
  testing::SimulatedJob job(HiddenKeys());
  for (int i = 0; i < 900 && !AnyInBlocks(job); ++i) job.RunFor(1'000'000'000);
  ASSERT_TRUE(AnyInBlocks(job));
  for (int i = 0; i < 900 && AnyInBlocks(job); ++i) job.RunFor(1'000'000'000);
  EXPECT_FALSE(AnyInBlocks(job));
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

// The calls beside them may have no times: then trials make no pair, and the search ends all the same.
TEST(GuardedKey, ATrialThatMakesNoPairsEndsWithItsRounds) {
  GuardedKey key(kKey);
  key.Use(kLeaveNcclAlone, {kGood});
  GuardedCall call{kKey, CallUse::kTrial, kGood};
  call.transfer_ns = kNccl;
  for (uint32_t i = 0; i < kMaxRounds; ++i) key.Take(call);
  EXPECT_FALSE(key.search_ended());
  key.Take(call);
  EXPECT_TRUE(key.search_ended());
  EXPECT_EQ(key.Winner(), nullptr);
}

TEST(GuardedKey, WhatTrialsShowedOutlivesARest) {
  GuardedKey key(kKey);
  key.Use(kLeaveNcclAlone, {kGood, kBad});
  const auto take = [&](const CollectiveConfig& config, int64_t ns) {
    GuardedCall call{kKey, config.leaves_nccl_alone() ? CallUse::kChoice : CallUse::kTrial, config};
    call.transfer_ns = ns;
    key.Take(call);
  };
  for (int i = 0; i < 5; ++i) {
    take(kLeaveNcclAlone, kNccl);
    take(kBad, kNccl * 13 / 10);
    take(kGood, kNccl * 9 / 10);
  }
  key.Use(kLeaveNcclAlone, {});
  EXPECT_FALSE(key.searching());
  EXPECT_TRUE(key.AllMade({kGood}));
  EXPECT_LT(key.TrialCostNs({kGood}), 0.05 * kNccl) << "it was seen to be faster";
  key.SetCandidates({{kBad, 0.9}, {kGood, 0.9}});
  EXPECT_EQ(key.OpenTrials(), std::vector{kGood}) << "the other was shown to be no gain";
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
