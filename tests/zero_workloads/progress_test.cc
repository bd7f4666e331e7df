// SPDX-License-Identifier: Apache-2.0
// Tests the figures that a run reports about itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/zero_workloads/checkpoint_runs.h"

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;

// In an evaluation of the whole text, the waits for gathers are longer than a step.
TEST(Progress, AStepsWaitIsNoLongerThanTheStep) {
  const TrainingReport run =
      TrainSmall(2, {"--steps", "4", "--stage", "3", "--eval-every", "1", "--held-out", DYNAMICCL_TEST_TEXT},
                 {{"HOSTCCL_TOPOLOGY", "two-nodes-ethernet"}});
  ASSERT_EQ(run.step_ms.size(), 4u);
  for (size_t step = 0; step < 4; ++step) EXPECT_LE(run.comm_wait_ms[step], run.step_ms[step]) << step;
}

TEST(Progress, AResumedRunCountsItsOwnSteps) {
  const TemporaryFolder place;
  TrainSmall(1, Saving(place / "checkpoints"));
  const RankOutcome rest =
      RunRanks(SmallRun(1, Saving(place / "checkpoints") + Arguments{"--resume", "6"}))[0];
  EXPECT_THAT(rest.output, HasSubstr("\n2 steps in "));
}

}  // namespace
}  // namespace dynamiccl::zero
