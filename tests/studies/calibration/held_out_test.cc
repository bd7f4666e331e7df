// SPDX-License-Identifier: Apache-2.0
#include "studies/calibration/held_out.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/simulator/closed_form.h"
#include "tests/traces/import/import_data.h"

namespace dynamiccl {
namespace {

// Returns times of Ring and Tree with noise. The stated spread of the repeats is the same noise.
TimedSystem MadeUp(double noise) {
  System truth{.name = "t", .source = "t", .ranks_per_node = 4, .max_channels = 1};
  truth.path(Algorithm::kRing, Protocol::kSimple) = {10, 2, 15, 100, 20, 0};
  truth.path(Algorithm::kTree, Protocol::kSimple) = {10, 3, 20, 80, 10, 0};
  std::mt19937 random(2);
  std::normal_distribution<double> normal(0, noise);
  TimedSystem system{.name = "made up", .cells = {}};
  for (const int ranks : {4, 8, 16, 32, 64}) {
    for (uint64_t bytes = 1024; bytes <= (1 << 28); bytes *= 4) {
      for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
        const CollectiveConfig config{algorithm, Protocol::kSimple, 0};
        const double us = CollectiveTimes(truth, ranks).Microseconds(Collective::kAllReduce, bytes, config);
        system.cells.push_back({.n_ranks = ranks,
                                .n_nodes = truth.NodesFor(ranks),
                                .bytes = bytes,
                                .config = config,
                                .us = us * std::exp(normal(random)),
                                .log_spread = noise});
      }
    }
  }
  return system;
}

TEST(HeldOut, TimesOfTheFormulasAreForeseenAndLinesAreNot) {
  const auto result = EvaluateHeldOut(MadeUp(0), {});
  ASSERT_TRUE(result) << Describe(result.error());
  EXPECT_EQ(result->rank_counts, (std::vector{4, 8, 16, 32, 64}));
  const HeldOutErrors& between = result->errors.at(LeftOut::kBetween);
  EXPECT_EQ(between.system.size(), 3u * 10 * 2);
  EXPECT_LT(SummarizeErrors(between.formulas).median, 0.03);
  EXPECT_LT(SummarizeErrors(between.system).mean, SummarizeErrors(between.by_ranks).mean);
  const HeldOutErrors& largest = result->errors.at(LeftOut::kLargest);
  EXPECT_LT(SummarizeErrors(largest.system).median, 0.1);
  EXPECT_LT(SummarizeErrors(largest.formulas).median, SummarizeErrors(largest.by_ranks).median);
  EXPECT_EQ(result->errors.at(LeftOut::kSize).system.size(), 5u * 8 * 2);
  EXPECT_GT(result->order.Tau(), 0.9);
  EXPECT_LT(SummarizeErrors(result->order.picked).mean, 0.01);
  EXPECT_EQ(result->order.calls, 5u * 10);
}

// The line is computed by hand, in logarithms. In the middle between two rank counts it is the geometric
// mean. It continues from 10 at 4 ranks and 30 at 8 to 90 at 16, and from 40 at 16 and 30 at 8 to 22.5 at 4.
TEST(HeldOut, TheLineInRanksGoesThroughTheTwoNearest) {
  TimedSystem system{.name = "three", .cells = {}};
  for (const auto& [ranks, us] : {std::pair(4, 10.0), {8, 30.0}, {16, 40.0}}) {
    system.cells.push_back({.n_ranks = ranks, .n_nodes = ranks / 4, .bytes = 1 << 20, .us = us});
  }
  const auto result = EvaluateHeldOut(system, {});
  ASSERT_TRUE(result) << Describe(result.error());
  EXPECT_NEAR(result->errors.at(LeftOut::kBetween).by_ranks.at(0), 1 - 20.0 / 30, 1e-9);
  EXPECT_NEAR(result->errors.at(LeftOut::kLargest).by_ranks.at(0), 90.0 / 40 - 1, 1e-9);
  EXPECT_NEAR(result->errors.at(LeftOut::kSmallest).by_ranks.at(0), 22.5 / 10 - 1, 1e-9);
}

TEST(HeldOut, RepeatsAreReportedAsTheDataHaveThem) {
  const auto result = EvaluateHeldOut(MadeUp(0.1), {});
  ASSERT_TRUE(result);
  EXPECT_NEAR(SummarizeErrors(result->errors.at(LeftOut::kBetween).repeats).median, std::exp(0.1) - 1, 1e-9);
}

// Returns times of Ring with a residual of deviation 0.3 for each size. When the ranks double, the residual
// changes at random, and 0.85 of it remains.
TimedSystem Wandering(unsigned seed) {
  System truth{.name = "t", .source = "t", .ranks_per_node = 4, .max_channels = 1};
  truth.path(Algorithm::kRing, Protocol::kSimple) = {10, 2, 15, 100, 20, 0};
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 0.3);
  TimedSystem system{.name = "wandering", .cells = {}};
  const CollectiveConfig config{Algorithm::kRing, Protocol::kSimple, 0};
  for (uint64_t bytes = 1024; bytes <= (1 << 28); bytes *= 2) {
    double residual = normal(random);
    for (const int ranks : {4, 8, 16, 32, 64, 128}) {
      const double us = CollectiveTimes(truth, ranks).Microseconds(Collective::kAllReduce, bytes, config);
      system.cells.push_back({.n_ranks = ranks,
                              .n_nodes = truth.NodesFor(ranks),
                              .bytes = bytes,
                              .config = config,
                              .us = us * std::exp(residual)});
      residual = 0.85 * residual + std::sqrt(1 - 0.85 * 0.85) * normal(random);
    }
  }
  return system;
}

// Intervals must contain nine of ten times. The tolerance of five percentage points is three standard
// deviations of the share for 342 times.
TEST(HeldOut, IntervalsHoldNineOfTenTimes) {
  HeldOutResult all;
  for (const unsigned seed : {1u, 2u, 3u}) {
    const auto result = EvaluateHeldOut(Wandering(seed), {});
    ASSERT_TRUE(result) << Describe(result.error());
    Pool(all, *result);
  }
  Coverage ranks;
  for (const LeftOut place : {LeftOut::kSmallest, LeftOut::kBetween, LeftOut::kLargest}) {
    ranks.judged += all.coverage.at(place).judged;
    ranks.inside += all.coverage.at(place).inside;
  }
  EXPECT_EQ(ranks.judged, 3u * 6 * 19);
  EXPECT_GE(ranks.Share(), 0.85);
  EXPECT_LE(ranks.Share(), 0.95);
  EXPECT_EQ(all.coverage.at(LeftOut::kSize).judged, 3u * 6 * 17);
  EXPECT_GE(all.coverage.at(LeftOut::kSize).Share(), 0.85);
  EXPECT_LE(all.coverage.at(LeftOut::kSize).Share(), 0.95);
}

TEST(HeldOut, TooFewScalesAreNotJudged) {
  TimedSystem system{.name = "small",
                     .cells = {{.n_ranks = 4, .bytes = 8, .us = 1}, {.n_ranks = 8, .bytes = 8, .us = 1}}};
  const auto result = EvaluateHeldOut(system, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported);
}

TEST(HeldOut, SummariesAreMedianAndMean) {
  EXPECT_EQ(SummarizeErrors({}).cells, 0u);
  EXPECT_DOUBLE_EQ(SummarizeErrors({0.3, 0.1, 0.2, 1.0}).median, 0.25);
  EXPECT_DOUBLE_EQ(SummarizeErrors({0.3, 0.1, 0.2, 1.0}).mean, 0.4);
}

// The bounds are those of docs/results/simulator.md for MareNostrum5.
TEST(HeldOut, MareNostrum5) {
  TimedSystems systems;
  ASSERT_TRUE(systems.Read(CALIBRATION_SAMPLES "/mn5_h100_allreduce_forced_algo.csv"));
  const auto result = EvaluateHeldOut(systems.Take().at(0), {});
  ASSERT_TRUE(result) << Describe(result.error());
  const ErrorSummary between = SummarizeErrors(result->errors.at(LeftOut::kBetween).system);
  EXPECT_EQ(between.cells, 2u * 9 * 3);
  EXPECT_LE(between.median, 0.10);
  EXPECT_LE(between.mean, 0.20);
  EXPECT_LE(SummarizeErrors(result->errors.at(LeftOut::kLargest).system).median, 0.20);
  EXPECT_LE(SummarizeErrors(result->order.picked).mean, 0.004);
  EXPECT_GE(result->order.Tau(), 0.85);
}

// The same page on Alps: the errors are smaller than those of the line between neighbouring rank counts, for
// the same times.
TEST(HeldOut, Alps) {
  DYNAMICCL_NEED_DATA(table, "unified/nccl_tests_unified.csv.gz");
  TimedSystems systems;
  ASSERT_TRUE(systems.Read(table));
  HeldOutResult alps;
  for (const TimedSystem& system : systems.Take()) {
    if (!system.name.starts_with("cscs-alps-gh200 / ")) continue;
    // Judges the intervals of one setting only, because those of all five take half a minute.
    const bool judged = system.name.find("/ default") != std::string::npos;
    const auto result = EvaluateHeldOut(system, {}, judged ? Intervals::kJudged : Intervals::kNotJudged);
    ASSERT_TRUE(result) << Describe(result.error());
    Pool(alps, *result);
  }
  const HeldOutErrors& between = alps.errors.at(LeftOut::kBetween);
  EXPECT_EQ(between.system.size(), 5u * 6 * 30);
  EXPECT_LE(SummarizeErrors(between.system).median, 0.12);
  EXPECT_LT(SummarizeErrors(between.system).median, SummarizeErrors(between.by_ranks).median);
  EXPECT_LT(SummarizeErrors(between.system).mean, SummarizeErrors(between.by_ranks).mean);
  EXPECT_LE(SummarizeErrors(alps.errors.at(LeftOut::kLargest).system).median, 0.20);
  EXPECT_EQ(alps.coverage.at(LeftOut::kBetween).judged, 6u * 30);
  EXPECT_GE(alps.coverage.at(LeftOut::kBetween).Share(), 0.85);
  EXPECT_LE(alps.coverage.at(LeftOut::kBetween).Share(), 0.95);
}

}  // namespace
}  // namespace dynamiccl
