// SPDX-License-Identifier: Apache-2.0
// Tests the search for steps on traces whose steps are known.
#include "tools/advise/step_search.h"

#include <gtest/gtest.h>

#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

TraceRecord CallOf(uint64_t bytes, int64_t issued_ns = 0) {
  IssuedCall issued;
  issued.call.bytes = bytes;
  issued.issued_ns = issued_ns;
  return CallRecord(0, issued);
}

TEST(StepSearch, FindsTheShortestSequenceThatTheEndRepeats) {
  StepSearch search;
  for (const uint64_t bytes : {9, 8, 7, 1, 2, 3, 1, 2, 3, 1, 2, 3}) search.Take(CallOf(bytes), -1);
  const StepDivision division = search.Divide(true);
  EXPECT_FALSE(division.marked);
  EXPECT_EQ(division.calls_of_step, 3u);
  EXPECT_EQ(division.skipped, 0u) << "the first three calls are as long as a step";
  EXPECT_EQ(division.NumberOf(3, -1), 1);
  EXPECT_EQ(division.NumberOf(11, -1), 3);
}

TEST(StepSearch, CountsStepsFromTheEnd) {
  StepSearch search;
  for (const uint64_t bytes : {9, 1, 2, 1, 2}) search.Take(CallOf(bytes), -1);
  const StepDivision division = search.Divide(true);
  EXPECT_EQ(division.skipped, 1u);
  EXPECT_FALSE(division.NumberOf(0, -1));
  EXPECT_EQ(division.NumberOf(1, -1), 0);
}

TEST(StepSearch, OneStepWhereNothingRepeatsAndPacedCallsWhereTheyAreTimed) {
  StepSearch search;
  for (int64_t i = 0; i < 12; ++i) search.Take(CallOf(i < 2 ? 64 : 4096, i * 1000), -1);
  EXPECT_EQ(search.Divide(false).calls_of_step, 12u);
  const StepDivision paced = search.Divide(true);
  EXPECT_TRUE(paced.paced);
  EXPECT_EQ(paced.skipped, 2u);
  EXPECT_EQ(paced.calls_of_step, 1u);
  EXPECT_EQ(StepSearch().Divide(true).calls_of_step, 0u);
}

// If the program enters a step again, the step continues where it stopped.
TEST(StepSearch, MarkedStepsGoOnWhenTheyAreEnteredAgain) {
  StepSearch search;
  for (const auto& [mark, bytes] :
       std::vector<std::pair<int64_t, uint64_t>>{{-1, 5}, {2, 1}, {1, 1}, {1, 2}, {2, 2}, {3, 2}, {3, 1}})
    search.Take(CallOf(bytes), mark);
  EXPECT_TRUE(search.Divide(true).marked);
  const std::vector<SeenStep>& steps = search.marked().steps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].hash, steps[1].hash);
  EXPECT_NE(steps[0].hash, steps[2].hash) << "in another order";
  EXPECT_EQ(steps[1].calls, 2u);
  EXPECT_FALSE(search.Divide(true).NumberOf(0, -1)) << "before the first mark";
}

// The search keeps only the last kLongestStep calls and finds what they repeat. It counts all earlier calls.
TEST(StepSearch, KeepsABoundedNumberOfCalls) {
  StepSearch search;
  for (uint64_t i = 0; i < kLongestStep + 1000; ++i) search.Take(CallOf(i), -1);
  EXPECT_EQ(search.Divide(false).calls_of_step, kLongestStep + 1000);
  for (uint64_t i = 0; i < 3 * 7; ++i) search.Take(CallOf(i % 7), -1);
  const StepDivision division = search.Divide(false);
  EXPECT_EQ(division.calls_of_step, 7u);
  EXPECT_EQ(search.collectives(), kLongestStep + 1021);
}

}  // namespace
}  // namespace dynamiccl
