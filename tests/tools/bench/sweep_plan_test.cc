// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/sweep_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "tools/bench/collective_bench.h"

namespace dynamiccl {
namespace {

ConfigMask RingAndTree(Collective collective) {
  ConfigMask mask;
  for (const Protocol protocol : {Protocol::kLL, Protocol::kSimple}) {
    mask.set(ConfigIndex(Algorithm::kRing, protocol));
    mask.set(ConfigIndex(Algorithm::kTree, protocol));
  }
  return mask & NcclConfigs(collective);
}

std::vector<PlannedCell> TwoCollectives() {
  return PlanSweep({.collectives = {Collective::kAllReduce, Collective::kAllGather},
                    .sizes = {100, 1 << 20},
                    .n_ranks = 3,
                    .max_channels = 8,
                    .allowed = [](Collective collective, uint64_t) { return RingAndTree(collective); }});
}

TEST(PlanSweep, EveryLegalConfigAndTheDefaultOnce) {
  const std::vector<PlannedCell> cells = TwoCollectives();
  // Each pair has the channels 1, 2, 4 and 8. Each size has one default.
  EXPECT_EQ(cells.size(), 2u * (4 * 4 + 1) + 2u * (2 * 4 + 1));
  std::set<std::tuple<int, uint64_t, int, int, int>> seen;
  int defaults = 0;
  for (const PlannedCell& cell : cells) {
    defaults += cell.is_default();
    seen.insert({static_cast<int>(cell.collective), cell.bytes, static_cast<int>(cell.config.algorithm),
                 static_cast<int>(cell.config.protocol), cell.config.channels});
  }
  EXPECT_EQ(seen.size(), cells.size());
  EXPECT_EQ(defaults, 4);
}

TEST(PlanSweep, SizesAreWholeElementsOnEveryRank) {
  for (const PlannedCell& cell : TwoCollectives()) {
    EXPECT_EQ(cell.bytes % (cell.collective == Collective::kAllGather ? 12 : 4), 0u);
    EXPECT_GT(cell.bytes, 0u);
  }
}

TEST(PlanSweep, SizesThatRoundToNothingOrToEachOtherAreDropped) {
  const auto cells = PlanSweep({.collectives = {Collective::kAllGather},
                                .sizes = {4, 16, 17, 23},
                                .n_ranks = 4,
                                .max_channels = 1,
                                .allowed = [](Collective, uint64_t) { return ConfigMask(); }});
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].bytes, 16u);
}

TEST(RotatedIndex, EveryRoundVisitsEveryCellOnceAndStaysWithNeighbours) {
  const std::vector<PlannedCell> cells = TwoCollectives();
  for (int round = 0; round < 40; ++round) {
    std::set<size_t> visited;
    for (size_t position = 0; position < cells.size(); ++position) {
      const size_t index = RotatedIndex(cells, position, round);
      EXPECT_EQ(cells[index].bytes, cells[position].bytes);
      EXPECT_EQ(cells[index].collective, cells[position].collective);
      visited.insert(index);
    }
    EXPECT_EQ(visited.size(), cells.size());
  }
  EXPECT_NE(RotatedIndex(cells, 0, 0), RotatedIndex(cells, 0, 1));
}

TEST(SweepBudget, IterationsFillASampleAndRepeatsFillTheBudget) {
  EXPECT_EQ(IterationsFor(10, 1500), 32);
  EXPECT_EQ(IterationsFor(500, 1500), 3);
  EXPECT_EQ(IterationsFor(1e6, 1500), 1);
  EXPECT_EQ(RepeatsWithin(10e6, 1e6, 8), 8);
  EXPECT_EQ(RepeatsWithin(5e6, 1e6, 8), 5);
  EXPECT_EQ(RepeatsWithin(-5, 1e6, 8), 2);
  EXPECT_EQ(RepeatsWithin(-5, 1e6, 1), 1);
}

}  // namespace
}  // namespace dynamiccl
