// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/optimizer/loss_scale.h"

#include <gtest/gtest.h>

namespace dynamiccl::zero {
namespace {

constexpr LossScaleSettings kSettings{
    .first = 1024, .dynamic = true, .growth_interval = 3, .hysteresis = 2, .least = 256};

TEST(LossScale, DoublesAfterStepsWithoutOverflow) {
  LossScale scale(kSettings);
  for (const double after : {1024, 1024, 2048, 2048, 2048, 4096}) {
    ASSERT_TRUE(scale.Update(false));
    EXPECT_EQ(scale.value(), after);
  }
}

TEST(LossScale, AnOverflowStartsTheCountAnew) {
  LossScale scale(kSettings);
  for (const bool overflow : {false, false, true, false, false}) ASSERT_TRUE(scale.Update(overflow));
  EXPECT_EQ(scale.value(), 1024);
  ASSERT_TRUE(scale.Update(false));
  EXPECT_EQ(scale.value(), 2048);
}

TEST(LossScale, HalvesWhenOverflowsUsedUpTheHysteresisAndEndsAtTheLeast) {
  LossScale scale(kSettings);
  for (const double after : {1024, 512, 256}) {
    ASSERT_TRUE(scale.Update(true));
    EXPECT_EQ(scale.value(), after);
  }
  EXPECT_FALSE(scale.Update(true));
  EXPECT_EQ(scale.value(), 256);
}

TEST(LossScale, GrowthGivesTheHysteresisBack) {
  LossScale scale(kSettings);
  for (const bool overflow : {true, true, false, false, false, true}) ASSERT_TRUE(scale.Update(overflow));
  EXPECT_EQ(scale.value(), 1024);
  ASSERT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.value(), 512);
}

TEST(LossScale, AFixedOneNeverChangesAndTakesNoOverflow) {
  LossScale scale({.first = 128});
  EXPECT_TRUE(scale.enabled());
  for (int step = 0; step < 5000; ++step) ASSERT_TRUE(scale.Update(false));
  EXPECT_EQ(scale.value(), 128);
  EXPECT_FALSE(scale.Update(true));
  EXPECT_FALSE(LossScale({}).enabled());
}

TEST(LossScale, GoesOnFromAState) {
  LossScale one(kSettings), other(kSettings);
  for (const bool overflow : {true, false, false}) ASSERT_TRUE(one.Update(overflow));
  other.Restore(one.state());
  for (const bool overflow : {false, true, true}) {
    ASSERT_TRUE(one.Update(overflow));
    ASSERT_TRUE(other.Update(overflow));
    EXPECT_EQ(one.value(), other.value());
  }
}

TEST(LossScale, ARestoredStateStaysWithinItsOwnSettings) {
  LossScale fixed({.first = 8});
  fixed.Restore({65536, 5, 2});
  EXPECT_EQ(fixed.value(), 8);
  LossScale bounded(kSettings);
  bounded.Restore({128, 0, 9});
  EXPECT_EQ(bounded.value(), 256);
  EXPECT_TRUE(bounded.Update(true)) << "the first of two overflows";
  EXPECT_FALSE(bounded.Update(true));
}

}  // namespace
}  // namespace dynamiccl::zero
