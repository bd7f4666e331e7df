// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/structure_watch.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

TEST(StructureWatch, NeedsASignOfTheLstmAndNewSteps) {
  StructureWatch watch;
  watch.Take(3, ZeroStage::kUnknown);
  EXPECT_FALSE(watch.IsOther(1)) << "the job's first experiment";
  EXPECT_FALSE(watch.IsOther(2)) << "other steps, but nothing surprised the LSTM";
  watch.Take(4, ZeroStage::kUnknown);
  EXPECT_FALSE(watch.IsOther(2)) << "a surprise, and the steps are as before";
  watch.Take(5, ZeroStage::kUnknown);
  EXPECT_TRUE(watch.IsOther(3));
  watch.Take(6, ZeroStage::kUnknown);
  EXPECT_FALSE(watch.IsOther(1)) << "these steps were searched already";
  EXPECT_EQ(watch.others(), 1);
}

TEST(StructureWatch, AnotherStageIsASignByItself) {
  StructureWatch watch;
  watch.Take(0, ZeroStage::kStage2);
  EXPECT_FALSE(watch.IsOther(1));
  watch.Take(0, ZeroStage::kUnknown);
  EXPECT_FALSE(watch.IsOther(2)) << "a stage that is not recognised for a while is no other one";
  watch.Take(0, ZeroStage::kStage3);
  EXPECT_TRUE(watch.IsOther(2)) << "the same calls, in another stage";
}

TEST(StructureWatch, AStageThatIsRecognisedLateIsNoChange) {
  StructureWatch watch;
  EXPECT_FALSE(watch.IsOther(1));
  watch.Take(0, ZeroStage::kStage3);
  EXPECT_FALSE(watch.IsOther(1));
  EXPECT_FALSE(watch.IsOther(2));
}

TEST(StructureWatch, AJobThatNeverRestsIsReportedAFewTimesOnly) {
  StructureWatch watch;
  for (uint32_t change = 0; change < 100; ++change) {
    watch.Take(change, ZeroStage::kUnknown);
    (void)watch.IsOther(change);
  }
  EXPECT_EQ(watch.others(), StructureWatch::kMaxChanges);
}

}  // namespace
}  // namespace dynamiccl
