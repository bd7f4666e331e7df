// SPDX-License-Identifier: Apache-2.0
// Tests the search for a config that all keys use together, on simulated programs whose steps show known
// effects.
#include "src/decision/guard/common_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

CollectiveConfig Config(Algorithm algorithm, Protocol protocol, int channels) {
  return {algorithm, protocol, static_cast<uint8_t>(channels)};
}
const CollectiveConfig kRing1 = Config(Algorithm::kRing, Protocol::kSimple, 1);
const CollectiveConfig kLl128 = Config(Algorithm::kRing, Protocol::kLL128, 8);

// Returns rings of all protocols with 1 to 8 channels, which are predicted to take `simple`, `ll` and `ll128`
// times as long as NCCL's choice.
std::vector<ProbeCandidate> Rings(double simple, double ll, double ll128) {
  std::vector<ProbeCandidate> candidates;
  for (const auto& [protocol, predicted] :
       {std::pair{Protocol::kSimple, simple}, {Protocol::kLL, ll}, {Protocol::kLL128, ll128}}) {
    for (int channels = 8; channels > 0; channels /= 2)
      candidates.push_back({Config(Algorithm::kRing, protocol, channels), predicted * 8 / channels});
  }
  return candidates;
}

std::vector<CollectiveConfig> ConfigsOf(const std::vector<ProbeCandidate>& candidates) {
  std::vector<CollectiveConfig> configs;
  for (const ProbeCandidate& candidate : candidates) configs.push_back(candidate.config);
  return configs;
}

// The model orders the pairs of algorithm and protocol, by the heaviest key. It does not order channels: one
// channel is tried first, although the model expects it to take eight times as long as the best.
TEST(CommonCandidates, ThePairThatTheModelLikesBestComesFirstWithFewChannels) {
  const auto gather = Rings(1, 1.4, 1.1), reduce = Rings(1, 1.2, 1.3);
  const auto chosen = ConfigsOf(CommonCandidates({{0.3, &reduce}, {0.7, &gather}}));
  const auto ring = [](Protocol protocol, int channels) {
    return Config(Algorithm::kRing, protocol, channels);
  };
  std::vector<CollectiveConfig> expected;
  for (const Protocol protocol : {Protocol::kSimple, Protocol::kLL128, Protocol::kLL}) {
    for (const int channels : {1, 4}) expected.push_back(ring(protocol, channels));
  }
  for (const Protocol protocol : {Protocol::kSimple, Protocol::kLL128, Protocol::kLL})
    expected.push_back(ring(protocol, 8));
  EXPECT_EQ(chosen, expected);
}

TEST(CommonCandidates, NcclsOwnPairComesBeforeWhatTheModelLikes) {
  auto gather = Rings(1, 1.4, 1.1), reduce = Rings(1, 1.4, 1.1);
  for (ProbeCandidate& candidate : gather)
    candidate.of_nccls_pair = candidate.config.protocol == Protocol::kLL;
  for (ProbeCandidate& candidate : reduce)
    candidate.of_nccls_pair = candidate.config.protocol == Protocol::kLL128;
  const auto chosen = ConfigsOf(CommonCandidates({{0.4, &reduce}, {0.6, &gather}}));
  const std::vector<Protocol> expected{Protocol::kLL,    Protocol::kLL,     Protocol::kLL128,
                                       Protocol::kLL128, Protocol::kSimple, Protocol::kSimple};
  ASSERT_GE(chosen.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(chosen[i].protocol, expected[i]) << i;
}

TEST(CommonCandidates, WhatFewBytesCanUseIsLeftOut) {
  const std::vector<ProbeCandidate> trees{{Config(Algorithm::kTree, Protocol::kSimple, 1), 1}};
  const std::vector<ProbeCandidate> rings{{kRing1, 1}};
  EXPECT_EQ(ConfigsOf(CommonCandidates({{0.8, &rings}, {0.2, &trees}})), std::vector{kRing1});
  EXPECT_EQ(CommonCandidates({{0.6, &rings}, {0.4, &trees}}).size(), 2u);
  EXPECT_TRUE(CommonCandidates({}).empty());
}

// A program with steps of two calls of two keys. In one of three steps both keys use the config whose turn it
// is.
class Program {
 public:
  Program() {
    search.SetCandidates({{kRing1, 1}, {kLl128, 1}});
    search.Refill(experiment);
    experiment.Begin({0, 2}, true);
  }
  // Runs a block of steps; `effect` is the log of a step's time with kRing1 over that with the choices.
  void Block(double effect, double noise) {
    std::normal_distribution<double> normal(0, noise);
    for (size_t i = 0; i < StepExperiment::kStepsOfBlock; ++i, ++step_) {
      const int turn = static_cast<int>(step_ % 6);
      const CollectiveConfig config = turn == 1 ? kRing1 : turn == 4 ? kLl128 : kLeaveNcclAlone;
      Step(config, (turn == 1 ? effect : 0) + normal(random_));
    }
  }
  // Runs a block of steps of which one in three uses `config`; `effect` is its log as above.
  void BlockOf(const CollectiveConfig& config, double effect, double noise) {
    std::normal_distribution<double> normal(0, noise);
    for (size_t i = 0; i < StepExperiment::kStepsOfBlock; ++i) {
      const bool uses = i % 3 == 1;
      Step(uses ? config : kLeaveNcclAlone, (uses ? effect : 0) + normal(random_));
    }
  }
  void Step(const CollectiveConfig& config, double log_time) {
    for (const Collective collective : {Collective::kAllGather, Collective::kReduceScatter}) {
      GuardedCall call{{collective, {60}, Role::kUnknown},
                       config.leaves_nccl_alone() ? CallUse::kChoice : CallUse::kTrial,
                       config,
                       1,
                       now_ns_};
      call.number = call_++;
      experiment.Take(call, true);
    }
    now_ns_ += static_cast<int64_t>(2e7 * std::exp(log_time));
  }
  StepExperiment experiment;
  CommonSearch search;

 private:
  std::mt19937_64 random_{7};
  uint64_t call_ = 0;
  uint64_t step_ = 0;
  int64_t now_ns_ = 0;
};

TEST(CommonSearch, FindsALargeGainInFiveBlocks) {
  Program program;
  int blocks = 0;
  for (; blocks < 10 && !program.search.Winner(program.experiment); ++blocks) {
    program.Block(std::log(0.7), 0.05);
    EXPECT_TRUE(program.search.Judge(program.experiment).empty());
  }
  EXPECT_LE(blocks, 5);
  EXPECT_EQ(program.search.Winner(program.experiment), kRing1);
  EXPECT_EQ(program.search.Next(program.experiment, true), std::vector{kRing1})
      << "alone, so that it is soon sure";
  EXPECT_FALSE(program.search.over(program.experiment));
}

// If steps vary more, the search needs more steps to see that no config is better.
TEST(CommonSearch, EndsWhereNothingIsThereAndAdoptsNothing) {
  for (const auto& [noise, most] : {std::pair(0.04, 14u), std::pair(0.08, 36u), std::pair(0.3, 60u)}) {
    Program program;
    while (!program.search.over(program.experiment)) {
      program.Block(0, noise);
      program.search.Judge(program.experiment);
      ASSERT_FALSE(program.search.Winner(program.experiment));
    }
    EXPECT_LE(program.experiment.blocks_since_arms(), most) << noise;
  }
  Program program;
  program.search.End();
  EXPECT_TRUE(program.search.done());
  program.search.Restart();
  EXPECT_FALSE(program.search.done());
}

TEST(CommonSearch, WhatLookedFasterComesFirstAfterAChange) {
  Program program;
  program.Block(std::log(0.9), 0.02);
  program.Block(std::log(0.9), 0.02);
  program.search.Judge(program.experiment);
  for (int restarts = 0; restarts < 2; ++restarts) {
    program.search.Restart();
    program.experiment.Begin({0, 2}, true);
    const CollectiveConfig other = Config(Algorithm::kTree, Protocol::kSimple, 4);
    program.search.SetCandidates({{other, 1}, {kLl128, 1}, {kRing1, 1}});
    program.search.Refill(program.experiment);
    EXPECT_EQ(program.search.open(), (std::vector{kRing1, other})) << restarts;
    program.search.Judge(program.experiment);
  }
}

TEST(CommonSearch, WhatMakesStepsMuchSlowerMustGoAtOnce) {
  Program program;
  program.Block(std::log(1.6), 0.02);
  program.Block(std::log(1.6), 0.02);
  EXPECT_EQ(program.search.Judge(program.experiment), std::vector{kRing1});
}

// Runs steps until both arms are given up: kRing1 because its first use takes `first` times as long as a
// usual step, the other one because it changes nothing.
void GiveUpBoth(Program& program, double first) {
  for (int i = 0; i < 4; ++i) program.Step(kLeaveNcclAlone, 0);
  program.Step(kRing1, std::log(first));
  for (int i = 0; i < 7; ++i) program.Step(kLeaveNcclAlone, 0);
  program.Step(kLeaveNcclAlone, 0);
  EXPECT_EQ(program.search.Judge(program.experiment), std::vector{kRing1});
  for (int blocks = 0; blocks < 20 && !program.search.over(program.experiment); ++blocks) {
    program.BlockOf(kLl128, 0.01, 0.02);
    program.search.Judge(program.experiment);
  }
  ASSERT_TRUE(program.search.over(program.experiment));
}

// The first use of a config may have set up connections or met a stall.
TEST(CommonSearch, AnArmThatOnlyItsFirstUseSpokeAgainstIsUsedOnceMore) {
  Program program;
  GiveUpBoth(program, 2);
  ASSERT_TRUE(program.search.TryAgain(program.experiment));
  program.search.Refill(program.experiment);
  EXPECT_EQ(program.search.open(), std::vector{kRing1}) << "and not what was given up by its effect";
  EXPECT_FALSE(program.search.over(program.experiment));
  for (int blocks = 0; blocks < 10 && !program.search.Winner(program.experiment); ++blocks) {
    program.BlockOf(kRing1, std::log(0.7), 0.03);
    EXPECT_TRUE(program.search.Judge(program.experiment).empty());
  }
  EXPECT_EQ(program.search.Winner(program.experiment), kRing1);
  EXPECT_FALSE(program.search.TryAgain(program.experiment)) << "only once";
}

// A leader with a challenger: one channel of another pair of algorithm and protocol, which the search has not
// used yet.
class Challenge : public testing::Test {
 protected:
  static constexpr CollectiveConfig kChallenger{Algorithm::kTree, Protocol::kSimple, 1};
  Challenge() {
    program.search.SetCandidates({{kRing1, 1}, {kLl128, 1}, {kChallenger, 1}});
    for (int blocks = 0; blocks < 10 && !program.search.Leader(program.experiment); ++blocks) {
      program.BlockOf(kRing1, std::log(0.8), 0.03);
      EXPECT_TRUE(program.search.Judge(program.experiment).empty());
    }
    program.search.Refill(program.experiment);
  }
  // Runs blocks with the leader and the challenger in turns, until one of them wins or ten are over.
  void Run(double challenger) {
    for (int blocks = 0; blocks < 10 && !program.search.Winner(program.experiment); ++blocks) {
      program.BlockOf(kRing1, std::log(0.8), 0.03);
      program.BlockOf(kChallenger, std::log(challenger), 0.03);
      (void)program.search.Judge(program.experiment);
    }
  }
  Program program;
};

TEST_F(Challenge, IsOpenedBesideTheLeader) {
  EXPECT_EQ(program.search.Leader(program.experiment), kRing1);
  EXPECT_EQ(program.search.Next(program.experiment, true), (std::vector{kRing1, kChallenger}));
  EXPECT_EQ(program.search.Next(program.experiment, false), std::vector{kRing1}) << "the budget is spent";
}

TEST_F(Challenge, TheLeaderIsNotAdoptedBeforeItsChallengerWasUsed) {
  for (int blocks = 0; blocks < 4; ++blocks) program.BlockOf(kRing1, std::log(0.8), 0.03);
  const CommonSearch alone = [&] {
    CommonSearch search = program.search;
    search.SetCandidates({{kRing1, 1}, {kLl128, 1}});
    return search;
  }();
  EXPECT_EQ(alone.Winner(program.experiment), kRing1);
  EXPECT_FALSE(program.search.Winner(program.experiment));
  Run(1.1);
  EXPECT_EQ(program.search.Winner(program.experiment), kRing1) << "the challenger is slower";
}

TEST_F(Challenge, ABetterChallengerTakesOver) {
  Run(0.6);
  EXPECT_EQ(program.search.Leader(program.experiment), kChallenger);
  EXPECT_EQ(program.search.Winner(program.experiment), kChallenger);
}

TEST_F(Challenge, EndsAfterSoManyBlocks) {
  for (int blocks = 0; blocks < 14; ++blocks) program.BlockOf(kRing1, std::log(0.8), 0.03);
  EXPECT_EQ(program.search.Winner(program.experiment), kRing1) << "whatever was not used";
}

// Findings from other places promise that kLl128 saves a quarter of a step.
class Believed : public testing::Test {
 protected:
  Believed() {
    program.search.Restart();
    program.search.Believe({kLl128, {std::log(0.75), 0.06}});
    program.search.Refill(program.experiment);
  }
  Program program;
};

TEST_F(Believed, LeadsAloneBeforeAnyStepHasUsedIt) {
  EXPECT_EQ(program.search.open(), std::vector{kLl128});
  EXPECT_EQ(program.search.Leader(program.experiment), kLl128);
  EXPECT_EQ(program.search.Next(program.experiment, true), std::vector{kLl128});
  EXPECT_FALSE(program.search.Winner(program.experiment)) << "only this job's steps make it a choice";
  EXPECT_EQ(program.search.Known(kLl128, program.experiment).mean, std::log(0.75));
}

TEST_F(Believed, IsAdoptedWhenStepsAgree) {
  for (int blocks = 0; blocks < 10 && !program.search.Winner(program.experiment); ++blocks) {
    EXPECT_EQ(program.search.Leader(program.experiment), kLl128);
    program.BlockOf(kLl128, std::log(0.8), 0.03);
    (void)program.search.Judge(program.experiment);
    program.search.Refill(program.experiment);
  }
  EXPECT_EQ(program.search.Winner(program.experiment), kLl128);
}

TEST_F(Believed, LeadsNoLongerWhenStepsContradict) {
  for (int blocks = 0; blocks < 2; ++blocks) program.BlockOf(kLl128, std::log(1.1), 0.03);
  (void)program.search.Judge(program.experiment);
  EXPECT_FALSE(program.search.Leader(program.experiment));
  program.search.Refill(program.experiment);
  EXPECT_EQ(program.search.open().front(), kRing1) << "the search goes on as without the belief";
}

TEST_F(Believed, GoesWhenItsFirstUseMadeAStepLongByHalfAndTheSearchGoesOn) {
  program.BlockOf(kLeaveNcclAlone, 0, 0.03);
  program.Step(kLl128, std::log(2));
  program.Step(kLeaveNcclAlone, 0);
  EXPECT_EQ(program.search.Judge(program.experiment), std::vector{kLl128});
  EXPECT_FALSE(program.search.Leader(program.experiment));
  program.search.Refill(program.experiment);
  EXPECT_EQ(program.search.open(), std::vector{kRing1});
}

// The leader was alone at first. It must not wait for challengers that never come.
TEST(CommonSearch, ABelievedLeaderGetsAChallengerOnceStepsHaveUsedIt) {
  constexpr CollectiveConfig kTree1{Algorithm::kTree, Protocol::kSimple, 1};
  Program program;
  program.search.Restart();
  program.search.SetCandidates({{kRing1, 1}, {kTree1, 1}});
  program.search.Believe({kRing1, {std::log(0.75), 0.06}});
  program.search.Refill(program.experiment);
  EXPECT_FALSE(program.search.LacksChallenger(program.experiment)) << "no step has used the leader";
  for (int blocks = 0; blocks < 2; ++blocks) program.BlockOf(kRing1, std::log(0.8), 0.03);
  (void)program.search.Judge(program.experiment);
  EXPECT_TRUE(program.search.LacksChallenger(program.experiment));
  program.search.Refill(program.experiment);
  EXPECT_EQ(program.search.Next(program.experiment, true), (std::vector{kRing1, kTree1}));
  EXPECT_FALSE(program.search.LacksChallenger(program.experiment));
}

// A config that was in use before a change of the fabric. There it saved a quarter of a step.
class KeptAfterChange : public testing::Test {
 protected:
  static constexpr CollectiveConfig kOther{Algorithm::kTree, Protocol::kLL, 4};
  KeptAfterChange() {
    program.search.Restart();
    program.search.SetCandidates({{kOther, 1}, {kLl128, 1}});
    program.search.Believe({kLl128, {std::log(0.75), 0.2}, ExpectedFrom::kBeforeChange});
    program.search.Refill(program.experiment);
  }
  Program program;
};

TEST_F(KeptAfterChange, LeadsAlsoWithoutCredit) {
  EXPECT_EQ(program.search.Next(program.experiment, false), std::vector{kLl128});
}

TEST_F(KeptAfterChange, IsChallengedByConfigsWithOtherNumbersOfChannels) {
  for (int blocks = 0; blocks < 2; ++blocks) program.BlockOf(kLl128, std::log(0.75), 0.03);
  (void)program.search.Judge(program.experiment);
  program.search.Refill(program.experiment);
  EXPECT_EQ(program.search.Next(program.experiment, true), (std::vector{kLl128, kOther}));
}

// The config saves 5 % now. That is worth adopting, but on a changed fabric another config may save much
// more.
TEST_F(KeptAfterChange, IsGivenUpWhenItSavesLessThanHalfOfWhatItSaved) {
  for (int blocks = 0; blocks < 2; ++blocks) program.BlockOf(kLl128, std::log(0.95), 0.03);
  (void)program.search.Judge(program.experiment);
  EXPECT_TRUE(program.search.GaveUp(kLl128));
  EXPECT_FALSE(program.search.belief());
  program.search.Refill(program.experiment);
  EXPECT_EQ(program.search.open(), std::vector{kOther});
}

TEST_F(Believed, IsForgottenWhenTheFabricChanges) {
  program.search.Restart();
  program.search.Refill(program.experiment);
  EXPECT_FALSE(program.search.Leader(program.experiment));
  EXPECT_EQ(program.search.open().size(), kMaxCommonArms);
}

TEST(CommonSearch, AnArmWhoseFirstUseTookThreeTimesAsLongIsNotUsedAgain) {
  Program program;
  GiveUpBoth(program, 3.2);
  EXPECT_FALSE(program.search.TryAgain(program.experiment));
}

}  // namespace
}  // namespace dynamiccl
