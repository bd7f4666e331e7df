// SPDX-License-Identifier: Apache-2.0
// Tests the memory counters of each category: how LibTorch's blocks are added, moved and removed, and how
// peaks follow.
#include "zero_workloads/memory/memory_counters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/support/test_seed.h"

namespace dynamiccl::zero {
namespace {

using enum MemoryCategory;

void CountOnce() {
  static const bool counted = [] { return CountHostAllocations(), true; }();
  ASSERT_TRUE(counted);
}

int64_t Current(MemoryCategory category) {
  return ReadMemoryCounters()[category].current;
}

TEST(MemoryCounters, TensorsBelongToTheInnermostScope) {
  CountOnce();
  const int64_t master = Current(kMaster), buckets = Current(kBuckets),
                total = ReadMemoryCounters().total.current;
  {
    const CountAs outer(kMaster);
    const at::Tensor first = at::zeros({1000});
    const at::Tensor second = [] {
      const CountAs inner(kBuckets);
      return at::empty({77}, at::kByte);
    }();
    EXPECT_EQ(Current(kMaster), master + 4000);
    EXPECT_EQ(Current(kBuckets), buckets + 77);
    const at::Tensor view = first.narrow(0, 10, 10);  // a view takes no memory
    EXPECT_EQ(ReadMemoryCounters().total.current, total + 4077);
  }
  EXPECT_EQ(Current(kMaster), master);
  EXPECT_EQ(Current(kBuckets), buckets);
  EXPECT_GE(ReadMemoryCounters()[kMaster].peak, master + 4000);
}

TEST(MemoryCounters, AMovedTensorIsTakenOffWhereItIs) {
  CountOnce();
  const int64_t gradients = Current(kGradients), working = Current(kWorking);
  at::Tensor tensor = at::zeros({250});
  EXPECT_EQ(Current(kWorking), working + 1000);
  Recount(tensor.narrow(0, 5, 5), kGradients);  // counts the whole memory behind the view
  EXPECT_EQ(Current(kWorking), working);
  EXPECT_EQ(Current(kGradients), gradients + 1000);
  tensor.reset();
  EXPECT_EQ(Current(kGradients), gradients);
  Recount({}, kGradients);
  EXPECT_EQ(Current(kGradients), gradients);
}

TEST(MemoryCounters, ScopesAreOfTheThread) {
  CountOnce();
  const CountAs here(kMaster);
  const int64_t working = Current(kWorking);
  std::thread([&] {
    const at::Tensor tensor = at::zeros({100});
    EXPECT_EQ(Current(kWorking), working + 400);
  }).join();
  EXPECT_EQ(Current(kWorking), working);
}

TEST(MemoryCounters, APeriodBeginsWithWhatIsThere) {
  CountOnce();
  const at::Tensor stays = at::zeros({1000});
  TakePeriodPeak();
  const int64_t base = ReadMemoryCounters().total.current;
  at::zeros({500});
  EXPECT_EQ(TakePeriodPeak(), base + 2000);
  EXPECT_EQ(TakePeriodPeak(), base);
}

TEST(MemoryCounters, ActivationsKeptAreThoseOfTheMomentTheyAreNoted) {
  CountOnce();
  const CountAs category(kActivations);
  at::Tensor kept = at::zeros({100});
  at::zeros({1 << 20});  // freed before the next line
  NoteActivationsKept();
  EXPECT_EQ(ReadMemoryCounters().activations_kept, 400);
  EXPECT_GE(ReadMemoryCounters()[kActivations].peak, 4 << 20);
}

// Compares the counters with the test's own sums.
TEST(MemoryCounters, RandomTensorsAddUp) {
  CountOnce();
  const unsigned seed = test::TestSeed(1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&](int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); };
  const MemoryCounters before = ReadMemoryCounters();
  std::vector<std::pair<at::Tensor, size_t>> tensors;
  for (int i = 0; i < 2000; ++i) {
    if (const int what = draw(3); what == 0 && !tensors.empty()) {
      tensors.erase(tensors.begin() + draw(static_cast<int>(tensors.size())));
    } else if (what == 1 && !tensors.empty()) {
      auto& [tensor, category] = tensors[static_cast<size_t>(draw(static_cast<int>(tensors.size())))];
      category = static_cast<size_t>(draw(kMemoryCategories));
      Recount(tensor, static_cast<MemoryCategory>(category));
    } else {
      const auto category = static_cast<size_t>(draw(kMemoryCategories));
      const CountAs scope(static_cast<MemoryCategory>(category));
      tensors.emplace_back(at::empty({draw(5000)}, at::kByte), category);
    }
  }
  MemoryCounters expected = before;
  for (const auto& [tensor, category] : tensors) {
    expected.by_category[category].current += tensor.numel();
    expected.total.current += tensor.numel();
  }
  const MemoryCounters after = ReadMemoryCounters();
  EXPECT_EQ(after.total.current, expected.total.current);
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    EXPECT_EQ(after.by_category[i].current, expected.by_category[i].current)
        << Name(static_cast<MemoryCategory>(i));
    EXPECT_GE(after.by_category[i].peak, after.by_category[i].current);
  }
}

}  // namespace
}  // namespace dynamiccl::zero
