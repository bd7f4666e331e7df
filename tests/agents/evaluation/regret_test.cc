// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/regret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/support/judge_held_out.h"

namespace dynamiccl::agents {
namespace {

constexpr CollectiveConfig kRingLL{Algorithm::kRing, Protocol::kLL, 1};
constexpr CollectiveConfig kTreeLL{Algorithm::kTree, Protocol::kLL, 1};
constexpr CollectiveConfig kRingSimple{Algorithm::kRing, Protocol::kSimple, 4};

// The default config takes 100. Ring/LL looks best in the half that picks, but takes 110 in the half that
// judges. Tree/LL takes 80 in both.
SweptKey Key() {
  SweptKey key;
  key.topology = "t";
  key.question.bytes = 4096;
  key.configs = {{kRingLL, {70, 110}}, {kTreeLL, {80, 80}}, {kRingSimple, {100, 101}}};
  key.default_choice = SweptConfig{kRingSimple, {100, 100}};
  return key;
}

Chooser Always(const CollectiveConfig& config, const std::string& name = "always") {
  return {name, [config](const SweptKey&) { return config; }};
}

TEST(Regret, OracleIsValuedByTheHalfItDidNotPickBy) {
  EXPECT_EQ(OracleChoice(Key()), kRingLL);
  EXPECT_EQ(ValueOf(Key(), OracleChoice(Key())), 110) << "its luck does not count";
}

TEST(Regret, SummaryIsRelativeToOracleAndDefault) {
  const auto summaries = JudgeHeldOut({Key()}, {}, {Always(kTreeLL)});
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_NEAR(summaries[0].mean_regret, 80.0 / 110 - 1, 1e-12);
  EXPECT_NEAR(summaries[0].speed_up, 100.0 / 80, 1e-12);
  EXPECT_EQ(summaries[0].share_changed, 1);
  EXPECT_EQ(summaries[0].share_worse, 0);
}

TEST(Regret, TheDefaultsOwnConfigIsTheDefault) {
  const auto summaries =
      JudgeHeldOut({Key()}, {}, {Always(kRingSimple, "its config"), Always(kLeaveNcclAlone, "default")});
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].speed_up, 1);
  EXPECT_EQ(summaries[0].share_changed, 0);
  EXPECT_EQ(summaries[1].speed_up, 1);
}

TEST(Regret, MoreThanFivePercentSlowerCountsAsWorse) {
  const auto summaries = JudgeHeldOut({Key()}, {}, {Always(kRingLL)});
  EXPECT_EQ(summaries[0].share_worse, 1);
  EXPECT_NEAR(summaries[0].worst_slowdown, 0.1, 1e-12);
}

// Returns a config whose judging half has four repeats: their mean is `us`, and neighbours differ by the
// share `spread` of it.
SweptConfig Repeated(const CollectiveConfig& config, double us, double spread) {
  SweptConfig swept{config, {us, us}};
  for (int i = 0; i < 4; ++i) swept.values.push_back(static_cast<float>(us * (1 + spread * (i - 1.5))));
  return swept;
}

TEST(Regret, SurelyWorseIsWhatNoiseCannotExplain) {
  for (const double spread : {0.001, 0.2}) {
    SweptKey key = Key();
    key.configs = {Repeated(kRingLL, 110, spread), Repeated(kTreeLL, 100, spread)};
    key.default_choice = Repeated(kRingSimple, 100, spread);
    const auto summaries = JudgeHeldOut({key}, {}, {Always(kRingLL)});
    EXPECT_EQ(summaries[0].share_worse, 1);
    EXPECT_EQ(summaries[0].surely_worse, spread < 0.01 ? 1 : 0);
  }
}

TEST(Regret, GainsBeyondNoiseAreCountedApart) {
  SweptKey clear = Key(), noisy = Key();
  clear.configs = {{kRingLL, {50, 50}}, {kTreeLL, {80, 80}}, {kRingSimple, {100, 100}}};
  noisy.configs = {{kRingLL, {50, 95}}, {kTreeLL, {95, 140}}, {kRingSimple, {100, 100}}};
  noisy.question.bytes = 1;
  const auto by = [&](const CollectiveConfig& config) {
    return JudgeHeldOut({clear, noisy}, {}, {Always(config)}).front();
  };
  for (const auto& [config, kept] : {std::pair(kRingLL, 1.0), std::pair(kLeaveNcclAlone, 0.0)}) {
    const RegretSummary summary = by(config);
    EXPECT_EQ(summary.clear_keys, 1u);
    EXPECT_EQ(summary.other_keys, 1u);
    EXPECT_EQ(summary.clear_gain_kept, kept);
    EXPECT_EQ(summary.others_slower, 0);
  }
  EXPECT_NEAR(by(kTreeLL).clear_gain_kept, std::log(0.8) / std::log(0.5), 1e-12);
}

TEST(Regret, OneBadWindowOfATopologyIsItsWorst) {
  Chooser tries = Always(kLeaveNcclAlone, "tries");
  tries.cost = [](const SweptKey& key) {
    ProbeCost cost;
    cost.worst_window = key.topology == "t" ? 0.5 : 0.1;
    return cost;
  };
  SweptKey other = Key(), third = Key();
  other.topology = "u";
  third.topology = "v";
  const auto summaries = JudgeHeldOut({Key(), other, third}, {}, {tries});
  EXPECT_EQ(summaries[0].cost.worst_window, 0.5);
  EXPECT_EQ(summaries[0].median_window, 0.1);
}

TEST(Regret, SplitsAreApartAndKeysWithoutADefaultAreLeftOut) {
  SweptKey other = Key(), incomplete = Key();
  other.topology = "out";
  incomplete.default_choice.reset();
  const auto summaries = JudgeHeldOut({Key(), other, incomplete}, {0, {"out"}}, {Always(kTreeLL)});
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].split, Split::kSeen);
  EXPECT_EQ(summaries[0].keys, 1u);
  EXPECT_EQ(summaries[1].split, Split::kHeldOutTopology);
}

}  // namespace
}  // namespace dynamiccl::agents
