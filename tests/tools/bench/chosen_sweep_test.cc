// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/chosen_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tools/bench/rehearsed_sweep.h"
#include "tools/bench/sweep_slices.h"

namespace dynamiccl {
namespace {

constexpr int kRepeats = 8;

CostModelInput TwoNodes() {
  CostModelInput model;
  model.fabric = {.n_ranks = 2, .n_nodes = 2, .max_channels = 4, .intra = {1, 10}, .inter = {20, 2}};
  model.constants = NcclHopperConstants(2);
  return model;
}

// Every config has its own error factor, similar for all sizes. One config is far better than the model
// predicts.
MeasurementFile Record(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  MeasurementFile file{"hostccl", "test", "", {{"t", TwoNodes()}}, {}};
  std::map<size_t, double> errors;
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter}) {
    for (uint64_t bytes = 1 << 10; bytes <= 1 << 24; bytes *= 4) {
      for (const CollectiveConfig& config : EnumerateConfigs(NcclConfigs(collective), 4)) {
        if (config.algorithm != Algorithm::kRing && config.algorithm != Algorithm::kTree) continue;
        const size_t pair = ConfigIndex(config.algorithm, config.protocol);
        errors.emplace(pair, normal(random));
        const PlannedCell cell{collective, bytes, config};
        const double us = PriceCell(TwoNodes(), cell, config).prior_us * std::exp2(errors[pair]);
        Measurement row{"t", collective, bytes, config, false, {}};
        for (int i = 0; i < kRepeats; ++i)
          row.microseconds.push_back(static_cast<float>(us * std::exp2(0.03 * normal(random))));
        if (pair == ConfigIndex(Algorithm::kRing, Protocol::kSimple) && config.channels == 1) {
          file.rows.push_back(row);
          file.rows.back().is_default = true;
        }
        file.rows.push_back(std::move(row));
      }
    }
  }
  return file;
}

// Returns the octaves by which the best measured config is slower than the best of the record. A key without
// a measurement has the default's time.
double RegretOf(const MeasurementFile& chosen, const MeasurementFile& recorded) {
  using Key = std::pair<Collective, uint64_t>;
  std::map<Key, double> best, standard, found;
  const auto least = [](std::map<Key, double>& map, const Measurement& row, double us) {
    const auto [at, fresh] = map.emplace(Key{row.collective, row.bytes}, us);
    if (!fresh) at->second = std::min(at->second, us);
  };
  for (const Measurement& row : recorded.rows) {
    least(best, row, row.microseconds[1]);
    if (row.is_default) least(standard, row, row.microseconds[1]);
  }
  for (const Measurement& row : chosen.rows) least(found, row, row.microseconds[0]);
  double sum = 0;
  for (const auto& [key, us] : best)
    sum += std::log2((found.contains(key) ? found[key] : standard[key]) / us);
  return sum / static_cast<double>(best.size());
}

TEST(CellSurrogate, IsTheCostModelBeforeAnythingIsMeasuredAndLearnsFromNeighbours) {
  const CostModelInput model = TwoNodes();
  std::vector<PricedCell> cells;
  for (const uint8_t channels : {1, 2, 4}) {
    const CollectiveConfig config{Algorithm::kRing, Protocol::kSimple, channels};
    cells.push_back(PriceCell(model, {Collective::kAllReduce, 1 << 20, config}, config));
  }
  const CollectiveConfig other{Algorithm::kTree, Protocol::kLL, 1};
  cells.push_back(PriceCell(model, {Collective::kAllReduce, 1 << 10, other}, other));
  std::vector<std::vector<float>> samples(cells.size());
  const CellSurrogate before(cells, samples);
  for (size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(before.mean(i), std::log2(cells[i].prior_us));

  samples[0] = {static_cast<float>(cells[0].prior_us * 8), static_cast<float>(cells[0].prior_us * 8)};
  const CellSurrogate after(cells, samples);
  const auto moved = [&](size_t i) { return after.mean(i) - before.mean(i); };
  EXPECT_NEAR(moved(0), 3, 0.1);
  EXPECT_GT(moved(1), moved(3));  // Cell 1 has the same algorithm and protocol; cell 3 has others.
  EXPECT_LT(after.variance(0), after.variance(1));
  EXPECT_LT(after.variance(1), after.variance(3));
  EXPECT_LT(after.variance(3), before.variance(3));
  for (size_t i = 0; i < cells.size(); ++i) EXPECT_GE(after.variance(i), 0);
}

TEST(RehearsedSweep, ActiveChoiceFindsMoreThanRandomAndGridOrderInTheSameTime) {
  double active = 0, random = 0, grid = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const MeasurementFile recorded = Record(seed);
    const double budget_s = 0.1 * RehearsalSeconds(recorded);
    const auto regret = [&](SweepOrder order) {
      return RegretOf(*RehearseSweep(recorded, {order, seed, 12}, budget_s), recorded);
    };
    active += regret(SweepOrder::kActive);
    random += regret(SweepOrder::kRandom);
    grid += regret(SweepOrder::kGrid);
  }
  EXPECT_LT(active, 0.7 * random);
  EXPECT_LT(active, 0.7 * grid);
}

TEST(RehearsedSweep, EveryOrderEndsWithEverythingGivenTime) {
  const MeasurementFile recorded = Record(1);
  for (const SweepOrder order : {SweepOrder::kActive, SweepOrder::kRandom, SweepOrder::kGrid}) {
    const auto all = RehearseSweep(recorded, {order, 1, 12}, 1e6);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->rows.size(), recorded.rows.size());
    for (const Measurement& row : all->rows) EXPECT_GE(row.microseconds.size(), kRepeats / 2u);
  }
}

TEST(RehearsedSweep, ShowsEvenRepeatsAloneAndTheDefaultOfEveryKeyThatItVisits) {
  const MeasurementFile recorded = Record(2);
  const auto some = RehearseSweep(recorded, {SweepOrder::kRandom, 3, 12}, 0.05 * RehearsalSeconds(recorded));
  ASSERT_TRUE(some);
  std::map<std::pair<Collective, uint64_t>, bool> has_default;
  for (const Measurement& row : some->rows) {
    has_default[{row.collective, row.bytes}] |= row.is_default;
    for (const Measurement& from : recorded.rows) {
      if (from.bytes == row.bytes && from.config == row.config && from.collective == row.collective &&
          from.is_default == row.is_default) {
        for (const float us : row.microseconds) {
          const auto at = std::find(from.microseconds.begin(), from.microseconds.end(), us);
          EXPECT_EQ((at - from.microseconds.begin()) % 2, 0);
        }
      }
    }
  }
  for (const auto& [key, known] : has_default) EXPECT_TRUE(known);
}

TEST(NextSlice, GivesEveryTopologyAShareFirstAndThenTheMostPromising) {
  std::vector<SweptTopology> topologies(3);
  double remaining = 12;
  for (size_t i = 0; i < 3; ++i) {
    const auto slice = NextSlice(topologies, SweepOrder::kActive, remaining, 0.1);
    ASSERT_TRUE(slice);
    EXPECT_EQ(slice->topology, i);
    EXPECT_NEAR(slice->seconds, 2, 1e-9);
    topologies[i] = {true, false, i == 1 ? 3.0 : 1.0};
    remaining -= slice->seconds;
  }
  EXPECT_EQ(NextSlice(topologies, SweepOrder::kActive, remaining, 0.1)->topology, 1u);
  topologies[1].complete = true;
  EXPECT_EQ(NextSlice(topologies, SweepOrder::kActive, remaining, 0.1)->topology, 0u);
  topologies[0].complete = topologies[2].complete = true;
  EXPECT_FALSE(NextSlice(topologies, SweepOrder::kActive, remaining, 0.1));
  EXPECT_FALSE(NextSlice({{}}, SweepOrder::kActive, 0, 0.1));
}

TEST(NextSlice, BlindOrdersShareTheBudgetEqually) {
  std::vector<SweptTopology> topologies(4);
  double remaining = 8;
  for (SweptTopology& topology : topologies) {
    const auto slice = NextSlice(topologies, SweepOrder::kGrid, remaining, 0.1);
    EXPECT_NEAR(slice->seconds, 2, 1e-9);
    topology.begun = true;
    remaining -= slice->seconds;
  }
}

}  // namespace
}  // namespace dynamiccl
