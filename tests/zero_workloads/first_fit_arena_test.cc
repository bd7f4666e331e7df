// SPDX-License-Identifier: Apache-2.0
// Compares the arena with a list of bytes. The arena must return free memory at the lowest offset that fits.
#include "zero_workloads/memory/first_fit_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/test_seed.h"

namespace dynamiccl::zero {
namespace {

constexpr int64_t kUnit = kArenaAlignment;

TEST(FirstFitArena, TakesTheLowestHoleThatFits) {
  FirstFitArena arena(10 * kUnit);
  const int64_t a = *arena.Allocate(2 * kUnit), b = *arena.Allocate(kUnit), c = *arena.Allocate(3 * kUnit);
  EXPECT_EQ(a, 0);
  EXPECT_EQ(b, 2 * kUnit);
  EXPECT_EQ(c, 3 * kUnit);
  arena.Free(a);
  EXPECT_EQ(*arena.Allocate(3 * kUnit), 6 * kUnit);
  EXPECT_EQ(*arena.Allocate(1), 0) << "rounded up to one unit, in the first hole";
}

TEST(FirstFitArena, FailsForWantOfAContiguousPieceAlone) {
  FirstFitArena arena(8 * kUnit);
  std::vector<int64_t> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(*arena.Allocate(kUnit));
  for (size_t i = 0; i < 8; i += 2) arena.Free(blocks[i]);
  EXPECT_EQ(arena.Use().free, 4 * kUnit);
  EXPECT_EQ(arena.Use().largest_free, kUnit);
  EXPECT_FALSE(arena.Allocate(2 * kUnit));
  arena.Free(blocks[1]);
  EXPECT_EQ(arena.Use().largest_free, 3 * kUnit) << "holes on both sides join";
  EXPECT_TRUE(arena.Allocate(3 * kUnit));
}

TEST(FirstFitArena, RefusesToFreeWhatItDidNotHandOut) {
  FirstFitArena arena(4 * kUnit);
  const int64_t block = *arena.Allocate(2 * kUnit);
  EXPECT_THROW(arena.Free(block + kUnit), std::logic_error);
  arena.Free(block);
  EXPECT_THROW(arena.Free(block), std::logic_error);
}

TEST(FirstFitArena, RandomBlocksAgainstAListOfUnits) {
  const unsigned seed = test::TestSeed(1);
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr int64_t kUnits = 64;
  FirstFitArena arena(kUnits * kUnit);
  std::vector<bool> taken(kUnits, false);
  std::map<int64_t, int64_t> blocks;  // lengths by offset, in the arena's steps
  const auto lowest = [&](int64_t length) {
    for (int64_t at = 0; at + length <= kUnits; ++at) {
      bool fits = true;
      for (int64_t i = at; i < at + length; ++i) fits = fits && !taken[static_cast<size_t>(i)];
      if (fits) return at;
    }
    return int64_t{-1};
  };
  const auto mark = [&](int64_t begin, int64_t length, bool value) {
    for (int64_t i = begin; i < begin + length; ++i) taken[static_cast<size_t>(i)] = value;
  };
  for (int round = 0; round < 5000; ++round) {
    if (random() % 2 == 0 || blocks.empty()) {
      const int64_t length = 1 + static_cast<int64_t>(random() % 12);
      const int64_t expected = lowest(length);
      const auto offset = arena.Allocate(length * kUnit - static_cast<int64_t>(random() % kUnit));
      ASSERT_EQ(offset.value_or(-kUnit), expected * kUnit);
      if (expected < 0) continue;
      blocks[expected] = length;
      mark(expected, length, true);
    } else {
      auto block = std::next(blocks.begin(), static_cast<long>(random() % blocks.size()));
      arena.Free(block->first * kUnit);
      mark(block->first, block->second, false);
      blocks.erase(block);
    }
    const auto free = static_cast<int64_t>(std::count(taken.begin(), taken.end(), false));
    ASSERT_EQ(arena.Use().free, free * kUnit);
  }
}

}  // namespace
}  // namespace dynamiccl::zero
