// SPDX-License-Identifier: Apache-2.0
// Sweeps whose best config is known. Rules must find it if they can, and probing must find it within its
// budget of calls.
#include "studies/agents/baselines/config_baselines.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

#include "studies/agents/baselines/config_baselines_probing.h"
#include "tests/support/judge_held_out.h"
#include "tests/support/sample_policy.h"
#include "tests/support/synthetic_sweep.h"

namespace dynamiccl::agents {
namespace {

constexpr CollectiveConfig kUsual{Algorithm::kRing, Protocol::kSimple, 4};
constexpr CollectiveConfig kBest{Algorithm::kTree, Protocol::kLL, 4};

// Returns a key on which kBest takes `best_us`, and the default and all other configs take 100. The mean log
// of a config's repeats is exact. Otherwise noise would make one of the many configs faster, and a search
// would rightly find it.
SweptKey Key(const std::string& topology, uint64_t bytes, int ranks, double best_us, double noise) {
  SweptKey key;
  key.topology = topology;
  key.model.fabric = {ranks, 2, 8, {1, 8}, {10, 2}};
  key.model.constants = NcclHopperConstants(2);
  key.question = {Collective::kAllReduce, bytes, {}};
  std::mt19937_64 random(bytes);
  std::normal_distribution<double> normal;
  const auto timed = [&](const CollectiveConfig& config, double us) {
    SweptConfig swept{config, {us, us}, {}};
    std::array<double, 12> logs{};
    for (double& log : logs) log = noise * normal(random);
    const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / logs.size();
    for (const double log : logs) swept.picks.push_back(static_cast<float>(us * std::exp(log - mean)));
    return swept;
  };
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple}) {
      for (const uint8_t channels : {1, 4, 8}) {
        const CollectiveConfig config{algorithm, protocol, channels};
        key.question.allowed.set(ConfigIndex(algorithm, protocol));
        key.configs.push_back(timed(config, config == kBest ? best_us : 100));
      }
    }
  }
  key.default_choice = timed(kUsual, 100);
  return key;
}

const Chooser& Named(const std::vector<Chooser>& choosers, const std::string& name) {
  for (const Chooser& chooser : choosers) {
    if (chooser.name == name) return chooser;
  }
  throw std::logic_error(name);
}

TEST(CsvRules, AnswerForTheirShapeAndTheNearestSize) {
  const std::vector<SweptKey> seen = {Key("a", 1024, 8, 50, 0), Key("a", 1 << 20, 8, 200, 0)};
  const Chooser rules = CsvRulesChooser(seen);
  EXPECT_EQ(rules.choose(Key("b", 4096, 8, 50, 0)), kBest);
  EXPECT_EQ(rules.choose(Key("b", 1 << 19, 8, 50, 0)), kLeaveNcclAlone);
  EXPECT_EQ(rules.choose(Key("b", 1024, 16, 50, 0)), kLeaveNcclAlone) << "no rule for 16 ranks";
}

TEST(CalibratedDefault, LearnsThatOnePairIsFasterThanTheModelThinks) {
  const std::vector<SweptKey> seen = {Key("a", 1024, 8, 1, 0)};
  std::vector<SweptKey> all_channels = seen;
  for (SweptConfig& swept : all_channels[0].configs) {
    const bool best = swept.config.algorithm == kBest.algorithm && swept.config.protocol == kBest.protocol;
    swept.time = {best ? 1.0 : 100.0, best ? 1.0 : 100.0};
  }
  const CollectiveConfig chosen = CalibratedDefaultChooser(all_channels).choose(all_channels[0]);
  EXPECT_EQ(chosen.algorithm, kBest.algorithm);
  EXPECT_EQ(chosen.protocol, kBest.protocol);
}

TEST(Probing, FindsALargeGainWithinItsCalls) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  std::vector<SweptKey> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(Key("t", uint64_t{1024} << i % 8, 8, 50, 0.05));
  for (size_t i = 0; i < keys.size(); ++i) keys[i].question.bytes += i;  // so that all keys differ
  const auto choosers = ProbingChoosers(*policy, keys, 1);
  for (const char* name : {"policy, probes", "coordinate descent", "bandit, 5 % gate"}) {
    int found = 0;
    for (const SweptKey& key : keys) found += Named(choosers, name).choose(key) == kBest;
    EXPECT_EQ(found, 20) << name;
  }
}

TEST(Probing, WhereNothingIsBetterTheGatedOnesKeepTheDefault) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  for (auto& network : policy->tensors.config_weights_3) network[0] = 0;  // the policy promises nothing
  // The bandit calls each of 19 arms five times. With 5 % noise in a call, noise alone makes the lowest of
  // these 19 means 5 % too low. So the bandit is tested with 2 %; the other searches pass with 5 %. The seeds
  // of the keys decide how many of the 40 keys keep the default.
  const std::tuple<const char*, double, int> cases[] = {
      {"policy, probes", 0.05, 33}, {"cost model, probes", 0.05, 33}, {"bandit, 5 % gate", 0.02, 40}};
  for (const auto& [name, noise, kept_of_40] : cases) {
    std::vector<SweptKey> keys;
    for (int i = 0; i < 40; ++i) keys.push_back(Key("t", 1024 + static_cast<uint64_t>(i), 8, 100, noise));
    const auto choosers = ProbingChoosers(*policy, keys, 1);
    int kept = 0;
    double cost = 0;
    for (const SweptKey& key : keys) {
      kept += Named(choosers, name).choose(key).leaves_nccl_alone();
      cost += std::fabs(Named(choosers, name).cost(key).over_default) / 40;
    }
    EXPECT_EQ(kept, kept_of_40) << name;
    EXPECT_LT(cost, 0.05) << name;
  }
}

TEST(Probing, CallsAreTheSameForAll) {
  const auto policy = test::MakeRandomPolicy(3);
  const std::vector<SweptKey> keys = {Key("t", 1024, 8, 80, 0.05)};
  for (const Chooser& chooser : ProbingChoosers(*policy, keys, 1)) {
    EXPECT_LE(chooser.cost(keys[0]).probes, kProbingCalls) << chooser.name;
    EXPECT_LT(std::fabs(chooser.cost(keys[0]).over_default), 0.5) << chooser.name;
  }
}

TEST(Regret, IntervalsOfTwoSeedsHoldBothMeans) {
  std::vector<SweptKey> keys;
  for (int i = 0; i < 30; ++i)
    keys.push_back(Key("t" + std::to_string(i % 10), 1024 + static_cast<uint64_t>(i), 8, 50, 0));
  const Chooser none{"who", [](const SweptKey&) { return kLeaveNcclAlone; }};
  const Chooser best{"who", [](const SweptKey&) { return kBest; }};
  const auto summaries = JudgeHeldOut(keys, HoldOut{}, {none, best});
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].seeds, 2u);
  EXPECT_EQ(summaries[0].keys, 30u);
  EXPECT_NEAR(summaries[0].mean_regret, 0.5, 1e-9);
  EXPECT_NEAR(summaries[0].mean_interval.low, 0, 1e-9);
  EXPECT_NEAR(summaries[0].mean_interval.high, 1, 1e-9);
}

}  // namespace
}  // namespace dynamiccl::agents
