// SPDX-License-Identifier: Apache-2.0
// Tests the plan of a background load on a GPU, and the requests that are refused.
#include "tools/bench/cuda/background_load.h"

#include <gtest/gtest.h>

namespace dynamiccl::cuda {
namespace {

constexpr int kH200Multiprocessors = 132, kH200SharedBytes = 232448;

TEST(BackgroundLoad, ParsesKindAndShare) {
  const auto memory = ParseLoad("memory:1");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->kind, LoadKind::kMemory);
  EXPECT_EQ(memory->share, 1.0);
  const auto compute = ParseLoad("compute:0.25");
  ASSERT_TRUE(compute);
  EXPECT_EQ(compute->kind, LoadKind::kCompute);
  EXPECT_EQ(compute->share, 0.25);
}

TEST(BackgroundLoad, RefusesWhatIsNoLoad) {
  for (const char* text : {"", "memory", "memory:", "memory:0", "memory:-0.5", "memory:1.01", "memory:nan",
                           "memory:0.5x", "disk:0.5", "compute:0.76", ":0.5"}) {
    const auto load = ParseLoad(text);
    ASSERT_FALSE(load) << text;
    EXPECT_NE(load.error().hint.find("memory:0.5"), std::string::npos) << text;
  }
}

// A collective that finds no free multiprocessor would wait until the load ends.
TEST(BackgroundLoad, LeavesAQuarterOfTheMultiprocessorsFree) {
  for (int multiprocessors = 1; multiprocessors <= 192; ++multiprocessors) {
    for (const double share : {0.01, 0.5, 0.75}) {
      for (const LoadKind kind : {LoadKind::kCompute, LoadKind::kMemory}) {
        const LoadPlan plan = PlanLoad({kind, share}, multiprocessors, kH200SharedBytes);
        ASSERT_GE(plan.grid.blocks, 1u);
        if (multiprocessors < 4) continue;
        ASSERT_LE(plan.grid.blocks * 4, static_cast<unsigned>(multiprocessors) * 3) << multiprocessors;
      }
    }
  }
}

TEST(BackgroundLoad, ComputeHoldsMultiprocessorsAllTheTime) {
  const LoadPlan plan = PlanLoad({LoadKind::kCompute, 0.25}, kH200Multiprocessors, kH200SharedBytes);
  EXPECT_EQ(plan.grid.blocks, 33u);
  EXPECT_EQ(plan.duty.busy_ns, plan.duty.period_ns);
  EXPECT_EQ(plan.words, 0u);
  // A block with more than half of the shared memory leaves no room for a second block.
  EXPECT_GT(plan.grid.shared_bytes, static_cast<unsigned>(kH200SharedBytes) / 2);
  EXPECT_LT(plan.grid.shared_bytes, static_cast<unsigned>(kH200SharedBytes));
}

TEST(BackgroundLoad, MemoryIsBusyItsShareOfTheTime) {
  const LoadPlan plan = PlanLoad({LoadKind::kMemory, 0.3}, kH200Multiprocessors, kH200SharedBytes);
  EXPECT_EQ(plan.grid.blocks, 99u);
  EXPECT_EQ(plan.duty.busy_ns * 10, plan.duty.period_ns * 3);
  for (unsigned block = 0; block < plan.grid.blocks; ++block) {
    const Slice slice = SliceOf(plan.words, block, plan.grid.blocks);
    ASSERT_GE(slice.end - slice.begin, uint64_t{kWordsARound} * plan.grid.threads);
  }
}

}  // namespace
}  // namespace dynamiccl::cuda
