// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/meetings/meetings_simulation.h"

#include <gtest/gtest.h>

#include "tests/support/rounds.h"

namespace dynamiccl::testing {
namespace {

// "Again" is printed so that simulate_meetings repeats what failed.
std::string Again(const SimulationResult<MeetingCounts>& result) {
  return result.failing_seed ? fmt::format("{}; again: simulate_meetings --seed {} --decisions 100000",
                                           result.failure, *result.failing_seed)
                             : "nothing found";
}

TEST(MeetingsSimulation, TenMillionDecisionsOverHundredSeedsNeverDivergeNorWaitForEver) {
  constexpr Simulation kAll{.first_seed = 1, .seeds = Rounds(100), .decisions_per_seed = 100'000};
  const auto result = MeetingProtocols().front().run(kAll);
  EXPECT_FALSE(result.failing_seed) << Again(result);
  const MeetingCounts& counts = result.counts;
  RecordProperty("counts", Describe(counts));
  EXPECT_GE(counts.decisions, kAll.seeds * kAll.decisions_per_seed);
  // It would be easy not to diverge by never agreeing.
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

TEST(MeetingsSimulation, FindsEachWrongProtocol) {
  constexpr Simulation kUntilFound{.first_seed = 1, .seeds = 300, .decisions_per_seed = 100'000};
  for (const Protocol<MeetingCounts>& wrong : MeetingProtocols().subspan(1)) {
    const auto result = wrong.run(kUntilFound);
    EXPECT_TRUE(result.failure.starts_with(wrong.found_as)) << wrong.what << ": " << Again(result);
  }
}

TEST(MeetingsSimulation, SeedRepeatsItself) {
  const Simulation one{.first_seed = 7, .seeds = 1, .decisions_per_seed = 20'000};
  EXPECT_EQ(Describe(MeetingProtocols().front().run(one).counts),
            Describe(MeetingProtocols().front().run(one).counts));
}

}  // namespace
}  // namespace dynamiccl::testing
