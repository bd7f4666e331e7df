// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/stated_interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "src/simulator/closed_form.h"

namespace dynamiccl {
namespace {

// The reference is the conditional variance of normal variables with the correlation reach^doublings. It uses
// the inverse of the 2 x 2 covariance of the two neighbours.
TEST(StatedInterval, TheDistanceIsTheDeviationThatTheNeighboursLeave) {
  constexpr double kReach = 0.85;
  const auto correlation = [&](double a, double b) {
    return std::pow(kReach, std::fabs(std::log2(a) - std::log2(b)));
  };
  for (const auto& [low, here, high] : {std::array{8, 16, 32}, {8, 12, 64}, {2, 512, 1024}}) {
    const double l = correlation(low, here), h = correlation(high, here), both = correlation(low, high);
    const double variance = 1 - (l * l - 2 * l * h * both + h * h) / (1 - both * both);
    EXPECT_NEAR(DistanceFrom({low, high}, here, kReach), std::sqrt(variance), 1e-12);
  }
  const double beyond = correlation(64, 256);
  EXPECT_NEAR(DistanceFrom({8, 64}, 256, kReach), std::sqrt(1 - beyond * beyond), 1e-12);
  EXPECT_NEAR(DistanceFrom({64, 256}, 16, kReach), std::sqrt(1 - beyond * beyond), 1e-12);
  EXPECT_EQ(DistanceFrom({8, 64}, 64, kReach), 0);
  // A reach of 1 gives a random walk that never returns: Brownian motion and its bridge.
  EXPECT_NEAR(DistanceFrom({8, 64}, 512, 1), std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(DistanceFrom({8, 64}, 16, 1), std::sqrt(1.0 * 2 / 3), 1e-12);
}

TEST(StatedInterval, NineOfTenAreKeptInBothDirections) {
  std::vector<double> ratios;
  for (int i = 1; i <= 19; ++i) ratios.push_back(i % 2 == 0 ? 0.1 * i : -0.1 * i);
  // This is the 18th of 19 values. If all ranks are equally likely, a twentieth value lies above it with
  // probability 2 / 20.
  EXPECT_NEAR(*WidthOfNineInTen(ratios), 1.8, 1e-12);
  EXPECT_NEAR(*WidthOfNineInTen(std::span(ratios).first(9)), 0.9, 1e-12);
  EXPECT_FALSE(WidthOfNineInTen(std::span(ratios).first(8)));
}

System Measured() {
  System system{.name = "t", .source = "t", .ranks_per_node = 4, .max_channels = 1, .residual_reach = 0.85};
  system.path(Algorithm::kRing, Protocol::kSimple) = {10, 2, 15, 100, 20, 0};
  for (const int ranks : {4, 16}) {
    for (const uint64_t bytes : {1024u, 4096u})
      system.residuals.push_back({.n_ranks = ranks, .bytes = bytes, .log_factor = 0.1});
  }
  system.intervals = {{.collective = Collective::kAllReduce,
                       .seen = 0.3,
                       .seen_cells = 20,
                       .unseen = 0.4,
                       .unseen_cells = 20}};
  return system;
}

std::optional<double> WidthOn(const System& system, int ranks, uint64_t bytes) {
  return LogWidth(system, Collective::kAllReduce, bytes, ranks, system.NodesFor(ranks));
}

TEST(StatedInterval, TheWidthGrowsWithTheDistanceFromMeasuredRankCounts) {
  const System system = Measured();
  EXPECT_EQ(WidthOn(system, 16, 1024), 0.3);
  EXPECT_NEAR(*WidthOn(system, 8, 1024), 0.4 * DistanceFrom({4, 16}, 8, 0.85), 1e-12);
  EXPECT_NEAR(*WidthOn(system, 64, 1024), 0.4 * DistanceFrom({4, 16}, 64, 0.85), 1e-12);
  EXPECT_LT(*WidthOn(system, 64, 1024), *WidthOn(system, 1024, 1024));
  // Near a measured rank count the width is that of the middle of a doubling. Between sizes it is at least
  // 0.3.
  EXPECT_NEAR(*WidthOn(system, 17, 1024), 0.4 * (1 - 0.85) / std::sqrt(1 - 0.85 * 0.85), 1e-12);
  EXPECT_EQ(WidthOn(system, 17, 2048), 0.3);
}

TEST(StatedInterval, WhatWasNotJudgedHasNoWidth) {
  System system = Measured();
  EXPECT_FALSE(LogWidth(system, Collective::kAllGather, 1024, 16, 4));
  EXPECT_FALSE(LogWidth(system, Collective::kAllReduce, 1024, 16, 16));
  system.intervals[0].unseen = 0;
  EXPECT_TRUE(WidthOn(system, 16, 1024));
  EXPECT_FALSE(WidthOn(system, 8, 1024));
  system.intervals.clear();
  EXPECT_FALSE(WidthOn(system, 16, 1024));
}

// Times at one rank count show how far sizes between the measured ones are off, but nothing about other rank
// counts.
TEST(StatedInterval, OneRankCountIsEnoughForItsOwnSizes) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.1);
  std::vector<double> noises;
  std::vector<TimedCell> cells;
  for (uint64_t bytes = 8; bytes <= (uint64_t{1} << 30); bytes *= 2) {
    const double us = CollectiveTimes(Measured(), 4).Microseconds(Collective::kAllReduce, bytes, {});
    noises.push_back(noise(random));
    cells.push_back({.n_ranks = 4, .bytes = bytes, .us = us * std::exp(noises.back())});
  }
  auto fitted = FitSystem("one", cells, {});
  ASSERT_TRUE(fitted) << Describe(fitted.error());
  ASSERT_TRUE(StateErrors(*fitted, cells, {}));
  EXPECT_TRUE(fitted->errors.empty());
  ASSERT_EQ(fitted->intervals.size(), 1u);
  EXPECT_EQ(fitted->intervals[0].seen_cells, 26);
  // The reference is each size's noise compared with the mean of its neighbours', and of these the 25th of
  // 26. The fit follows a part of the noise.
  std::vector<double> misses;
  for (size_t i = 1; i + 1 < noises.size(); ++i)
    misses.push_back(std::fabs(noises[i] - (noises[i - 1] + noises[i + 1]) / 2));
  std::ranges::sort(misses);
  EXPECT_NEAR(fitted->intervals[0].seen, misses[24], 0.02);
  EXPECT_EQ(fitted->intervals[0].unseen, 0);
}

}  // namespace
}  // namespace dynamiccl
