// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/plugin/simulated_experiments.h"
#include "tests/src/decision/switching/simulation.h"
#include "tests/support/rounds.h"

namespace dynamiccl::testing {
namespace {

// Returns the failure and the command by which simulate_experiments repeats it.
std::string Again(const SimulationResult<SimulationCounts>& result, uint64_t decisions) {
  return result.failing_seed ? fmt::format("{}; again: simulate_experiments --seed {} --decisions {}",
                                           result.failure, *result.failing_seed, decisions)
                             : "nothing found";
}

TEST(ExperimentsSimulation, ThreeMillionDecisionsOverThirtySeedsNeverDivergeNorWaitForEver) {
  constexpr Simulation kAll{.first_seed = 1, .seeds = Rounds(30), .decisions_per_seed = 100'000};
  const SimulationResult<SimulationCounts> result = ExperimentProtocols().front().run(kAll);
  EXPECT_FALSE(result.failing_seed) << Again(result, kAll.decisions_per_seed);
  const SimulationCounts& counts = result.counts;
  RecordProperty("counts", Describe(counts));
  EXPECT_GE(counts.decisions, kAll.seeds * kAll.decisions_per_seed);
  // A guard that never tried anything would not diverge either.
  EXPECT_GT(counts.trials, counts.decisions / 100);
  EXPECT_GT(counts.leading, counts.decisions / 1000);
  EXPECT_GT(counts.searches, kAll.seeds);
  EXPECT_GT(counts.adoptions, kAll.seeds / 2);
  EXPECT_GT(counts.challenges, kAll.seeds / 4);
  EXPECT_GT(counts.beliefs, 0u);
  EXPECT_GT(counts.revocations, kAll.seeds);
  EXPECT_GT(counts.memory_levels, kAll.seeds);
  EXPECT_GT(counts.aborts, kAll.seeds);
  EXPECT_GT(counts.crashes, kAll.seeds / 4);
  EXPECT_GT(counts.lost_messages, 10 * kAll.seeds);
}

TEST(ExperimentsSimulation, FindsEachRuleThatRanksDidNotAgreeOn) {
  constexpr Simulation kUntilFound{.first_seed = 1, .seeds = 20, .decisions_per_seed = 100'000};
  for (const Protocol<SimulationCounts>& wrong : ExperimentProtocols().subspan(1)) {
    const SimulationResult<SimulationCounts> result = wrong.run(kUntilFound);
    EXPECT_TRUE(result.failure.starts_with(wrong.found_as))
        << wrong.what << ": " << Again(result, kUntilFound.decisions_per_seed);
  }
}

TEST(ExperimentsSimulation, SeedRepeatsItself) {
  const Simulation one{.first_seed = 7, .seeds = 1, .decisions_per_seed = 50'000};
  EXPECT_EQ(Describe(ExperimentProtocols().front().run(one).counts),
            Describe(ExperimentProtocols().front().run(one).counts));
}

}  // namespace
}  // namespace dynamiccl::testing
