// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/votes/votes_simulation.h"

#include <gtest/gtest.h>

#include "tests/support/rounds.h"

namespace dynamiccl::testing {
namespace {

// Returns the failure, and the command of simulate_votes that repeats it.
std::string Again(const SimulationResult<VoteCounts>& result) {
  return result.failing_seed ? fmt::format("{}; again: simulate_votes --seed {} --decisions 100000",
                                           result.failure, *result.failing_seed)
                             : "nothing found";
}

TEST(VotesSimulation, TenMillionDecisionsOverHundredSeedsNeverDivergeNorWaitForEver) {
  constexpr Simulation kAll{.first_seed = 1, .seeds = Rounds(100), .decisions_per_seed = 100'000};
  const auto result = VoteProtocols().front().run(kAll);
  EXPECT_FALSE(result.failing_seed) << Again(result);
  const VoteCounts& counts = result.counts;
  RecordProperty("counts", Describe(counts));
  EXPECT_GE(counts.decisions, kAll.seeds * kAll.decisions_per_seed);
  // A protocol that never agrees would not diverge either.
  EXPECT_GT(counts.by_table, counts.decisions / 20);
  EXPECT_GT(counts.yes, 20 * kAll.seeds);
  EXPECT_GT(counts.unequal, kAll.seeds);
  EXPECT_GT(counts.late, kAll.seeds);
  EXPECT_GT(counts.alone, kAll.seeds);
  EXPECT_GT(counts.not_attested, kAll.seeds / 2);
  EXPECT_GT(counts.waits, kAll.seeds);
  EXPECT_GT(counts.asked_again, kAll.seeds);
  EXPECT_GT(counts.crashes, kAll.seeds / 2);
  EXPECT_GT(counts.converged, kAll.seeds);
}

TEST(VotesSimulation, FindsEachWrongProtocol) {
  constexpr Simulation kUntilFound{.first_seed = 1, .seeds = 300, .decisions_per_seed = 100'000};
  for (const Protocol<VoteCounts>& wrong : VoteProtocols().subspan(1)) {
    const auto result = wrong.run(kUntilFound);
    EXPECT_TRUE(result.failure.starts_with(wrong.found_as)) << wrong.what << ": " << Again(result);
  }
}

TEST(VotesSimulation, SeedRepeatsItself) {
  const Simulation one{.first_seed = 7, .seeds = 1, .decisions_per_seed = 20'000};
  EXPECT_EQ(Describe(VoteProtocols().front().run(one).counts),
            Describe(VoteProtocols().front().run(one).counts));
}

}  // namespace
}  // namespace dynamiccl::testing
