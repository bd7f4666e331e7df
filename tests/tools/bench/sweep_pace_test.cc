// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/sweep_pace.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

TEST(SweepPace, ExpectsOfTheRestWhatTheFirstCellsTook) {
  SweepPace pace({10, 20, 30, 40});
  EXPECT_DOUBLE_EQ(pace.Round(), 100);
  EXPECT_DOUBLE_EQ(pace.RestOfRound(2), 70);
  pace.Observe(0, 2, 60);  // This is twice as long as expected.
  EXPECT_DOUBLE_EQ(pace.Round(), 200);
  EXPECT_DOUBLE_EQ(pace.RestOfRound(2), 140);
  EXPECT_DOUBLE_EQ(pace.RestOfRound(4), 0);
  pace.Observe(0, 2, 30);  // The cell is measured again on a quieter machine.
  EXPECT_DOUBLE_EQ(pace.Round(), 150);
}

TEST(RoundsAltogether, AreThoseThatTheBudgetAllowsAndAtLeastTwo) {
  EXPECT_EQ(RoundsAltogether(0, 0, 5e6, 1e6, 12), 5);
  EXPECT_EQ(RoundsAltogether(0, 0, 1, 1e6, 12), 2);
  EXPECT_EQ(RoundsAltogether(0, 0, 1, 1e6, 1), 1);
  EXPECT_EQ(RoundsAltogether(0, 0, 5e6, 1e6, 3), 3);
  // In the third of five rounds half remains, and then the machine becomes slow. The third round is the last
  // one.
  EXPECT_EQ(RoundsAltogether(3, 0.5e6, 2.5e6, 1e6, 12), 5);
  EXPECT_EQ(RoundsAltogether(3, 1e6, 2.5e6, 2e6, 12), 3);
  EXPECT_EQ(RoundsAltogether(3, 1e6, -9e6, 2e6, 12), 3);
}

}  // namespace
}  // namespace dynamiccl
