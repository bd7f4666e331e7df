// SPDX-License-Identifier: Apache-2.0
// Tests on sweeps in which it is known at which sizes the best config changes.
#include "studies/agents/baselines/scenarios.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/sample_policy.h"

namespace dynamiccl::agents {
namespace {

constexpr size_t kSizes = 12;
constexpr Protocol kProtocolsInOrder[] = {Protocol::kLL, Protocol::kLL128, Protocol::kSimple};

SweptConfig Timed(Protocol protocol, double us) {
  const auto repeats = std::vector<float>(6, static_cast<float>(us));
  return {{Algorithm::kRing, protocol, 1}, {us, us}, repeats, repeats};
}

// Returns a key for each size. LL is best below the size `first`, Simple is best from the size `second` on,
// and LL128 between them. Other protocols take 1.3 times as long. The default is Simple.
std::vector<SweptKey> Line(const std::string& topology, size_t first, size_t second, double noise = 0) {
  std::mt19937_64 random(first * 100 + second);
  std::normal_distribution<double> normal;
  std::vector<SweptKey> keys(kSizes);
  for (size_t i = 0; i < kSizes; ++i) {
    keys[i].topology = topology;
    keys[i].model.fabric = {8, 2, 8, {1, 8}, {10, 2}};
    keys[i].model.constants = NcclHopperConstants(2);
    // At these sizes, NCCL's model does not choose LL.
    keys[i].question = {Collective::kAllReduce, uint64_t{4} << 20 << i, {}};
    const size_t best = i < first ? 0 : i < second ? 1 : 2;
    for (size_t p = 0; p < 3; ++p) {
      keys[i].question.allowed.set(ConfigIndex(Algorithm::kRing, kProtocolsInOrder[p]));
      const double us = (p == best ? 100 : 130) * std::exp(noise * normal(random));
      keys[i].configs.push_back(Timed(kProtocolsInOrder[p], us));
    }
    keys[i].default_choice = keys[i].configs[2];
  }
  return keys;
}

TEST(Scenarios, BordersAreFoundBetweenAnyTwoSizes) {
  for (size_t first = 0; first <= kSizes; ++first) {
    for (size_t second = first; second <= kSizes; ++second) {
      const std::vector<SweptKey> keys = Line("t", first, second);
      const std::vector<KeyLine> lines = LinesOf(keys, 2);
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_EQ(BestBorders(lines[0]).ll_ends, first);
      EXPECT_EQ(BestBorders(lines[0]).simple_begins, second);
      const Borders own = BordersOf(lines[0], {"best", OracleChoice});
      EXPECT_EQ(own.ll_ends, first);
      EXPECT_EQ(own.simple_begins, second);
    }
  }
}

TEST(Scenarios, NoiseAtSingleKeysMovesNoBorderFar) {
  for (size_t first = 3; first < 6; ++first) {
    const std::vector<SweptKey> keys = Line("t", first, first + 4, 0.08);
    const Borders best = BestBorders(LinesOf(keys, 2)[0]);
    EXPECT_NEAR(static_cast<double>(best.ll_ends), static_cast<double>(first), 1);
    EXPECT_NEAR(static_cast<double>(best.simple_begins), static_cast<double>(first + 4), 1);
  }
}

TEST(Scenarios, ADefaultOfOneProtocolMissesBothBordersAndPaysForIt) {
  const std::vector<SweptKey> keys = Line("t", 4, 8);
  const Chooser usual{"default", [](const SweptKey&) { return kLeaveNcclAlone; }};
  const auto results = JudgeBorders(LinesOf(keys, 2), {usual, {"best", OracleChoice}});
  EXPECT_EQ(results[0].lines[0], 1u);
  EXPECT_EQ(results[0].within_one_class[0], 0u);
  EXPECT_EQ(results[0].within_one_class[1], 0u);
  EXPECT_NEAR(results[0].loss, 8.0 / 12 * std::log(1.3), 1e-9);
  EXPECT_EQ(results[1].within_one_class[0], 1u);
  EXPECT_EQ(results[1].within_one_class[1], 1u);
  EXPECT_NEAR(results[1].loss, 0, 1e-9);
}

const GrowthResult& Named(const std::vector<GrowthResult>& results, const std::string& way) {
  for (const GrowthResult& result : results) {
    if (result.way == way) return result;
  }
  throw std::logic_error(way);
}

TEST(Scenarios, AnEntryIsReadyBeforeTheFirstCallOnlyWithTheSignal) {
  // LL is best at all sizes, and the policy chooses it.
  const std::vector<SweptKey> keys = Line("t", kSizes, kSizes);
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kLL);
  const auto results = JudgeGrowth(*policy, LinesOf(keys, 2), {1, 2}, 1);
  const GrowthResult& alone = Named(results, "NCCL's own choice");
  EXPECT_EQ(alone.changes, kSizes - 1);
  EXPECT_EQ(alone.never, kSizes - 1);
  EXPECT_NEAR(alone.early_regret, 0.3, 1e-6);
  for (const std::string way : {"frozen", "adaptive", "adaptive, carried over"}) {
    const GrowthResult& ready = Named(results, way + ", with the signal");
    EXPECT_EQ(ready.ready, kSizes - 1) << way;
    EXPECT_NEAR(ready.early_regret, 0, 1e-9) << way;
  }
  const GrowthResult& late = Named(results, "frozen");
  EXPECT_EQ(late.ready, 0u);
  EXPECT_EQ(late.never, 0u);
  EXPECT_EQ(late.p75_call, 2);
  EXPECT_NEAR(late.early_regret, 0.3 / kEarlyCalls, 1e-6);
}

TEST(Scenarios, WhatWasSettledIsWrongBeyondABorder) {
  // LL is best up to the fourth size and Simple from the fifth on. One of the changes of size crosses this
  // border.
  const std::vector<SweptKey> keys = Line("t", 4, 4);
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kLL);
  const auto results = JudgeGrowth(*policy, LinesOf(keys, 2), {1, 2}, 1);
  const GrowthResult& carried = Named(results, "adaptive, carried over, with the signal");
  EXPECT_EQ(carried.changes, kSizes - 1);
  EXPECT_GE(carried.ready, 3u);          // ready before the border
  EXPECT_LT(carried.ready, kSizes - 1);  // not ready at the border
}

TEST(Scenarios, SizesAlsoBecomeSmaller) {
  const std::vector<SweptKey> keys = Line("t", kSizes, kSizes);
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kLL);
  const auto results = JudgeGrowth(*policy, LinesOf(keys, 2), {2, 1}, 1);
  EXPECT_EQ(Named(results, "frozen").changes, kSizes - 1);
  const GrowthResult& carried = Named(results, "adaptive, carried over before the change");
  EXPECT_EQ(carried.ready, 0u) << "a size's first call is NCCL's own";
  EXPECT_EQ(carried.p75_call, 2) << "and all after it use what was settled";
}

TEST(Scenarios, WhatGrowsByAFactorThatNoKeyHasIsNoChange) {
  const std::vector<SweptKey> keys = Line("t", 3, 6);
  EXPECT_TRUE(
      JudgeGrowth(*test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kLL), LinesOf(keys, 2), {1, 3}, 1)
          .empty());
}

}  // namespace
}  // namespace dynamiccl::agents
