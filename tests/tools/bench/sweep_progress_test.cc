// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/sweep_progress.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

SweepPosition Position(int round, size_t done) {
  return {.round = round, .rounds = 4, .done = done, .cells = 472, .spent_s = 4, .left_s = 6};
}

TEST(SweepProgressText, OneTopologyIsLeftWithItsOwnTime) {
  const SweepPart part{.label = "two-nodes-ethernet", .budget_s = 10};
  EXPECT_EQ(SweepProgressText(part, Position(0, 20)),
            "two-nodes-ethernet: first calls of 20 of 472 configs, about 6 s left");
  EXPECT_EQ(SweepProgressText(part, Position(2, 20)), "two-nodes-ethernet: round 2 of 4, about 6 s left");
}

TEST(SweepProgressText, LaterTopologiesAreExpectedToTakeAsLong) {
  const SweepPart first{.label = "a", .number = 1, .count = 4, .budget_s = 10};
  EXPECT_EQ(SweepProgressText(first, Position(1, 9)), "1 of 4: a: round 1 of 4, about 36 s left");
  const SweepPart second{.label = "b", .number = 2, .count = 4, .budget_s = 10, .later_s = 22};
  EXPECT_EQ(SweepProgressText(second, Position(1, 9)), "2 of 4: b: round 1 of 4, about 28 s left");
}

TEST(OverBudgetText, ComesAfterTheFirstRoundOfASweepThatTakesTooLong) {
  const SweepPart fits{.label = "a", .number = 1, .count = 14, .budget_s = 9.5};
  EXPECT_EQ(OverBudgetText(fits, Position(1, 472)), "");
  SweepPart part{.label = "a", .number = 1, .count = 14, .budget_s = 4.3};
  EXPECT_EQ(OverBudgetText(part, Position(1, 471)), "");
  EXPECT_EQ(OverBudgetText(part, Position(2, 472)), "");
  EXPECT_NE(OverBudgetText(part, Position(1, 472)).find("about 2 min and not 60 s"), std::string::npos);
  part.number = 2;
  EXPECT_EQ(OverBudgetText(part, Position(1, 472)), "");
}

}  // namespace
}  // namespace dynamiccl
