// SPDX-License-Identifier: Apache-2.0
// The times are made from a known system with noise and outliers. The fit must find the system's constants
// again.
#include "src/simulator/fit_system.h"
#include "src/base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/simulator/closed_form.h"
#include "src/simulator/stated_interval.h"

namespace dynamiccl {
namespace {

System Truth() {
  System system{.name = "truth", .source = "made up", .ranks_per_node = 4, .max_channels = 8};
  system.path(Algorithm::kRing, Protocol::kLL) = {9, 1.1, 6, 70, 14, 0};
  system.path(Algorithm::kRing, Protocol::kSimple) = {16, 4, 17, 150, 40, 0};
  system.path(Algorithm::kTree, Protocol::kLL) = {8, 0.9, 9, 40, 8, 0};
  system.path(Algorithm::kTree, Protocol::kSimple) = {15, 5, 20, 120, 33, 0};
  return system;
}

constexpr double kNoise = 0.05;
constexpr double kOutlierFactor = 4;

// Returns times of every path at every size and rank count. One cell in twelve is an outlier.
std::vector<TimedCell> Times(const System& truth, const std::vector<int>& rank_counts, bool noisy) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal(0, kNoise);
  std::vector<TimedCell> cells;
  for (const int ranks : rank_counts) {
    const CollectiveTimes times(truth, ranks);
    for (uint64_t bytes = 256; bytes <= (uint64_t{1} << 30); bytes *= 4) {
      for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
        for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple}) {
          const CollectiveConfig config{algorithm, protocol, 0};
          double us = times.Microseconds(Collective::kAllReduce, bytes, config);
          if (noisy) us *= std::exp(normal(random)) * (random() % 12 == 0 ? kOutlierFactor : 1);
          cells.push_back({.n_ranks = ranks,
                           .n_nodes = truth.NodesFor(ranks),
                           .bytes = bytes,
                           .config = config,
                           .us = us});
        }
      }
    }
  }
  return cells;
}

void ExpectConstants(const System& fitted, const System& truth, double most) {
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple}) {
      const PathCosts& found = fitted.path(algorithm, protocol);
      const PathCosts& wanted = truth.path(algorithm, protocol);
      for (const auto value : {&PathCosts::inter_hop_us, &PathCosts::intra_gbps, &PathCosts::inter_gbps}) {
        EXPECT_NEAR(found.*value / (wanted.*value), 1, most)
            << Name(algorithm) << '/' << Name(protocol) << " wanted " << wanted.*value;
      }
    }
  }
}

TEST(FitSystem, FindsTheConstantsOfCleanTimes) {
  const auto fitted = FitSystem("clean", Times(Truth(), {2, 4, 8, 16, 64, 256}, false), {});
  ASSERT_TRUE(fitted) << Describe(fitted.error());
  ExpectConstants(*fitted, Truth(), 0.03);
  for (const Residual& residual : fitted->residuals) EXPECT_LT(std::fabs(residual.log_factor), 0.02);
}

TEST(FitSystem, FindsTheConstantsUnderNoiseAndOutliers) {
  const auto fitted = FitSystem("noisy", Times(Truth(), {2, 4, 8, 16, 64, 256}, true), {});
  ASSERT_TRUE(fitted) << Describe(fitted.error());
  ExpectConstants(*fitted, Truth(), 0.12);
}

TEST(FitSystem, FormulasReachRankCountsThatWereNotMeasured) {
  const System truth = Truth();
  auto fitted = FitSystem("noisy", Times(truth, {2, 4, 8, 16, 64, 256}, true), {});
  ASSERT_TRUE(fitted);
  fitted->residuals.clear();
  for (const int ranks : {32, 1024, 4096}) {
    const CollectiveTimes times(*fitted, ranks);
    const CollectiveTimes wanted(truth, ranks);
    for (uint64_t bytes = 64; bytes <= (uint64_t{1} << 32); bytes *= 8) {
      EXPECT_NEAR(times.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone) /
                      wanted.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone),
                  1, 0.1)
          << ranks << ' ' << bytes;
    }
  }
}

// The input is the time of the cheapest config, without its name. The fit cannot tell paths by name, so only
// the total must be right.
TEST(FitSystem, ExplainsTimesOfUnknownConfigs) {
  const System truth = Truth();
  std::vector<TimedCell> cells;
  for (const int ranks : {4, 8, 16, 32, 64, 256}) {
    const CollectiveTimes times(truth, ranks);
    for (uint64_t bytes = 8; bytes <= (uint64_t{1} << 32); bytes *= 2) {
      cells.push_back({.n_ranks = ranks,
                       .n_nodes = truth.NodesFor(ranks),
                       .bytes = bytes,
                       .us = times.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone)});
    }
  }
  auto fitted = FitSystem("unknown", cells, {});
  ASSERT_TRUE(fitted) << Describe(fitted.error());
  fitted->residuals.clear();
  std::vector<double> errors;
  for (const int ranks : {128, 512}) {
    const CollectiveTimes times(*fitted, ranks);
    const CollectiveTimes wanted(truth, ranks);
    for (uint64_t bytes = 8; bytes <= (uint64_t{1} << 32); bytes *= 2) {
      errors.push_back(std::fabs(times.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone) /
                                     wanted.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone) -
                                 1));
    }
  }
  EXPECT_LT(Median(errors), 0.05);
}

TEST(FitSystem, IsTheSameBitForBitAndHardlyDependsOnTheSeed) {
  const std::vector<TimedCell> cells = Times(Truth(), {4, 16, 64}, true);
  const auto first = FitSystem("n", cells, {.seed = 1});
  const auto again = FitSystem("n", cells, {.seed = 1});
  const auto other = FitSystem("n", cells, {.seed = 2});
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(*first, *again);
  const double ours = first->path(Algorithm::kRing, Protocol::kSimple).inter_gbps;
  EXPECT_NEAR(other->path(Algorithm::kRing, Protocol::kSimple).inter_gbps / ours, 1, 0.02);
}

TEST(FitSystem, FewerChannelsTellWhatOneCarries) {
  System truth = Truth();
  truth.path(Algorithm::kRing, Protocol::kSimple).channel_gbps = 6;
  std::vector<TimedCell> cells;
  for (const uint8_t channels : {1, 2, 4, 8}) {
    for (uint64_t bytes = 1 << 10; bytes <= (1 << 30); bytes *= 4) {
      const CollectiveConfig config{Algorithm::kRing, Protocol::kSimple, channels};
      cells.push_back({.n_ranks = 8,
                       .n_nodes = 2,
                       .bytes = bytes,
                       .config = config,
                       .us = CollectiveTimes(truth, 8).Microseconds(Collective::kAllReduce, bytes, config)});
    }
  }
  const auto fitted = FitSystem("channels", cells, {});
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->max_channels, 8);
  EXPECT_NEAR(fitted->path(Algorithm::kRing, Protocol::kSimple).channel_gbps, 6, 0.2);
}

TEST(FitSystem, CliffsThatKeepTheirBytesARankAreFound) {
  System truth = Truth();
  std::vector<TimedCell> cells;
  for (const int ranks : {4, 8, 16, 32, 64, 128}) {
    const CollectiveTimes times(truth, ranks);
    for (uint64_t bytes = 256; bytes <= (uint64_t{1} << 32); bytes *= 2) {
      const bool cliff = bytes / static_cast<uint64_t>(ranks) == (1 << 20);
      cells.push_back(
          {.n_ranks = ranks,
           .n_nodes = truth.NodesFor(ranks),
           .bytes = bytes,
           .us = times.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone) * (cliff ? 5 : 1)});
    }
  }
  truth.max_channels = 1;
  FitResiduals(truth, cells);
  EXPECT_GT(truth.drift_bytes_per_rank, 0u);
  std::erase_if(truth.residuals, [](const Residual& residual) { return residual.n_ranks == 32; });
  System plain = truth;
  plain.residuals.clear();
  const uint64_t at_cliff = uint64_t{32} << 20;
  EXPECT_NEAR(CollectiveTimes(truth, 32).Microseconds(Collective::kAllReduce, at_cliff, kLeaveNcclAlone) /
                  CollectiveTimes(plain, 32).Microseconds(Collective::kAllReduce, at_cliff, kLeaveNcclAlone),
              5, 0.5);
}

TEST(FitSystem, RefusesWhatIsNoTime) {
  TimedCell cell{.n_ranks = 4, .bytes = 8, .us = 10};
  EXPECT_TRUE(FitSystem("n", std::vector{cell}, {}));
  EXPECT_FALSE(FitSystem("n", {}, {}));
  for (const double us : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    cell.us = us;
    EXPECT_FALSE(FitSystem("n", std::vector{cell}, {})) << us;
  }
  cell.us = 1;
  cell.config = {Algorithm::kCollnetChain, Protocol::kSimple, 0};
  EXPECT_FALSE(FitSystem("n", std::vector{cell}, {}));
  cell.config = kLeaveNcclAlone;
  cell.n_nodes = 5;
  EXPECT_FALSE(FitSystem("n", std::vector{cell}, {}));
}

// Returns times of a system with eight ranks and NICs per node, on full nodes and on one, two and four ranks
// of each node.
std::vector<TimedCell> TimesOnPartOfNodes(const System& truth, const std::vector<int>& nodes) {
  std::vector<TimedCell> cells;
  for (const int n_nodes : nodes) {
    for (const int on_node : {1, 2, 4, 8}) {
      const int ranks = n_nodes * on_node;
      if (ranks < 2) continue;
      const CollectiveTimes times(truth, ranks, n_nodes);
      for (uint64_t bytes = 1024; bytes <= (uint64_t{1} << 32); bytes *= 4) {
        const double us = times.Microseconds(Collective::kAllReduce, bytes, kLeaveNcclAlone);
        cells.push_back({.n_ranks = ranks, .n_nodes = n_nodes, .bytes = bytes, .us = us});
      }
    }
  }
  return cells;
}

// The fit must find the share of a node's network that its ranks reach, and predict the next scale.
TEST(FitSystem, RunsOnPartOfANodeDoNotSpoilTheFit) {
  System truth = Truth();
  truth.ranks_per_node = 8;
  for (const int network_ranks : {1, 4, 8}) {
    SCOPED_TRACE(network_ranks);
    truth.network_ranks = network_ranks;
    const auto fitted = FitSystem("part", TimesOnPartOfNodes(truth, {1, 2, 4, 8}), {});
    ASSERT_TRUE(fitted) << Describe(fitted.error());
    EXPECT_EQ(fitted->network_ranks, network_ranks);
    std::vector<double> errors;
    for (const TimedCell& cell : TimesOnPartOfNodes(truth, {16, 32})) {
      const CollectiveTimes times(*fitted, cell.n_ranks, cell.n_nodes);
      errors.push_back(std::fabs(times.Microseconds(cell.collective, cell.bytes, cell.config) / cell.us - 1));
    }
    EXPECT_LT(Median(errors), 0.15);
  }
}

TEST(FitSystem, StatesErrorsOfRankCountsThatAFitDidNotSee) {
  const std::vector<TimedCell> cells = Times(Truth(), {4, 8, 16, 64}, true);
  auto fitted = FitSystem("noisy", cells, {});
  ASSERT_TRUE(fitted);
  ASSERT_TRUE(StateErrors(*fitted, cells, {}));
  ASSERT_EQ(fitted->errors.size(), 4u);
  for (const StatedError& error : fitted->errors) {
    EXPECT_EQ(error.cells, 48) << error.n_ranks;
    EXPECT_GT(error.median, 0.01) << "noise alone is 5 %";
    EXPECT_LT(error.median, 0.25) << error.n_ranks;
    EXPECT_GE(error.mean, error.median);
  }
  // One time in twelve is four times too long. An interval leaves out more than that, one time in ten.
  ASSERT_EQ(fitted->intervals.size(), 1u);
  const StatedInterval& stated = fitted->intervals[0];
  EXPECT_EQ(stated.unseen_cells, 4 * 48);
  EXPECT_EQ(stated.seen_cells, 4 * 4 * 10);
  for (const double width :
       {stated.seen, stated.unseen * DistanceFrom({8, 16, 64}, 4, fitted->residual_reach)}) {
    EXPECT_GT(width, kNoise);
    EXPECT_LT(width, std::log(kOutlierFactor));
  }
  const std::vector<TimedCell> two = Times(Truth(), {4, 8}, true);
  ASSERT_TRUE(StateErrors(*fitted, two, {}));
  EXPECT_TRUE(fitted->errors.empty());
}

}  // namespace
}  // namespace dynamiccl
