// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/switching/simulation.h"

#include <gtest/gtest.h>

#include "tests/support/rounds.h"

namespace dynamiccl::testing {
namespace {

// Returns what failed, with the command that repeats it.
std::string Again(const SimulationResult<SimulationCounts>& result) {
  return result.failing_seed ? fmt::format("{}; again: simulate_switching --seed {} --decisions 100000",
                                           result.failure, *result.failing_seed)
                             : "nothing found";
}

TEST(SwitchingSimulation, TenMillionDecisionsOverHundredSeedsNeverDivergeNorWaitForEver) {
  constexpr Simulation kAll{.first_seed = 1, .seeds = Rounds(100), .decisions_per_seed = 100'000};
  const SimulationResult<SimulationCounts> result = Protocols().front().run(kAll);
  EXPECT_FALSE(result.failing_seed) << Again(result);
  const SimulationCounts& counts = result.counts;
  RecordProperty("counts", Describe(counts));
  EXPECT_GE(counts.decisions, kAll.seeds * kAll.decisions_per_seed);
  // A protocol that never switches would not diverge either.
  EXPECT_GT(counts.commits, 20 * kAll.seeds);
  EXPECT_GT(counts.aborts, 5 * kAll.seeds);
  EXPECT_GT(counts.waits, kAll.seeds);
  EXPECT_GT(counts.asks, kAll.seeds);
  EXPECT_GT(counts.refused_passed, kAll.seeds);
  EXPECT_GT(counts.crashes, kAll.seeds / 2);
  EXPECT_GT(counts.lost_messages, 10 * kAll.seeds);
  EXPECT_GT(counts.returns, kAll.seeds);
  EXPECT_GT(counts.converged, 4 * kAll.seeds);
}

TEST(SwitchingSimulation, FindsEachWrongProtocol) {
  constexpr Simulation kUntilFound{.first_seed = 1, .seeds = 100, .decisions_per_seed = 100'000};
  for (const Protocol<SimulationCounts>& wrong : Protocols().subspan(1)) {
    const SimulationResult<SimulationCounts> result = wrong.run(kUntilFound);
    EXPECT_TRUE(result.failure.starts_with(wrong.found_as)) << wrong.what << ": " << Again(result);
  }
}

TEST(SwitchingSimulation, SeedRepeatsItself) {
  for (const uint64_t seed : {7u, 8u}) {
    const Simulation one{.first_seed = seed, .seeds = 1, .decisions_per_seed = 50'000};
    EXPECT_EQ(Describe(Protocols().front().run(one).counts), Describe(Protocols().front().run(one).counts));
  }
}

}  // namespace
}  // namespace dynamiccl::testing
