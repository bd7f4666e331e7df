// SPDX-License-Identifier: Apache-2.0
// Tests which batch fits into memory, and how memory that others occupy changes it.
#include "zero_workloads/memory/auto_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/support/test_seed.h"
#include "tests/zero_workloads/rank_processes.h"
#include "zero_workloads/memory/taken_memory.h"

namespace dynamiccl::zero {
namespace {

using ::testing::HasSubstr;

TEST(AutoBatch, StartsWithOneRowAndDoubles) {
  AutoBatch batch(64);
  EXPECT_EQ(batch.Rows({1000, 0, 0}), 1);
  batch.Learn(1, 10);
  EXPECT_EQ(batch.Rows({1000, 0, 0}), 2);
  batch.Learn(2, 20);
  EXPECT_EQ(batch.Rows({1000, 0, 0}), 4);
  batch.Learn(64, 640);
  EXPECT_EQ(batch.Rows({100000, 0, 0}), 64);
}

TEST(AutoBatch, FallsAtOnceAndNeverBelowOne) {
  AutoBatch batch(64);
  batch.Learn(64, 640);
  EXPECT_EQ(batch.Rows({1000, 0, 300}), 32);   // 640 is more than 0.9 x 700
  EXPECT_EQ(batch.Rows({1000, 800, 100}), 8);  // 90 are usable
  EXPECT_EQ(batch.Rows({1000, 990, 100}), 1);  // nothing is usable
  EXPECT_EQ(batch.Rows({1000, 5000, 100}), 1);
}

TEST(AutoBatch, NeverTakesMoreThanIsUsable) {
  const unsigned seed = test::TestSeed(1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto draw = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  for (int i = 0; i < 10000; ++i) {
    AutoBatch batch(1 + draw(1000));
    const int64_t rows = 1 + draw(500), bytes = rows * (1 + draw(1000));
    batch.Learn(rows, bytes);
    const MemoryState state{draw(1000000), draw(500000), draw(500000)};
    const int64_t chosen = batch.Rows(state);
    EXPECT_EQ(chosen & (chosen - 1), 0);
    EXPECT_LE(chosen, 2 * rows);
    if (chosen > 1) {
      EXPECT_LE(static_cast<double>(bytes / rows * chosen), 0.9 * static_cast<double>(state.Free()) + 1);
    }
  }
}

TEST(TakenMemory, FollowsASchedule) {
  auto taken = TakenMemory::Parse("2:24M,5:1K,7:0");
  ASSERT_TRUE(taken);
  const std::vector<int64_t> expected = {0, 0, 24 << 20, 24 << 20, 24 << 20, 1024, 1024, 0, 0};
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_EQ(taken->At(static_cast<int64_t>(step)), expected[step]) << step;
  EXPECT_EQ(TakenMemory::Parse("")->At(3), 0);
}

TEST(TakenMemory, FollowsAFile) {
  const TemporaryFolder folder;
  const std::string path = (folder / "taken").string();
  std::ofstream(path) << "3M\n";
  auto taken = TakenMemory::Parse("file:" + path);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->At(0), 3 << 20);
  std::ofstream(path) << "what";
  EXPECT_EQ(taken->At(1), 3 << 20);
  std::ofstream(path) << "17";
  EXPECT_EQ(taken->At(2), 17);
  std::filesystem::remove(path);
  EXPECT_EQ(taken->At(3), 17);
}

TEST(TakenMemory, SaysWhatIsWrong) {
  for (const char* text : {"20", "a:1", "1:x", "1:2:3", "5:1,5:2", "-1:5", "1:-5", "1:99999999999G"})
    EXPECT_FALSE(TakenMemory::Parse(text)) << text;
  EXPECT_THAT(TakenMemory::Parse("file:/no/such").error().message, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace dynamiccl::zero
