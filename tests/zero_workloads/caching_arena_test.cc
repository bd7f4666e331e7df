// SPDX-License-Identifier: Apache-2.0
// Tests the model of LibTorch's CUDA allocator: what it takes from the device, what it keeps, and when an
// allocation fails.
#include "zero_workloads/memory/caching_arena.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/test_seed.h"

namespace dynamiccl::zero {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(CachingArena, LargeBlocksShareSegmentsOfTwentyMebibytes) {
  CachingArena arena(40 * kMiB);
  const int64_t first = *arena.Allocate(4 * kMiB), second = *arena.Allocate(4 * kMiB);
  EXPECT_EQ(second - first, 4 * kMiB);
  EXPECT_EQ(arena.Use().free, 32 * kMiB);
  // 12 MiB of the segment and 20 MiB of the device are free.
  EXPECT_EQ(arena.Use().largest_free, 20 * kMiB);
  EXPECT_TRUE(arena.Allocate(20 * kMiB));
  EXPECT_EQ(arena.Use().largest_free, 12 * kMiB);
}

TEST(CachingArena, TakesTheSmallestBlockThatFits) {
  CachingArena arena(60 * kMiB);
  const int64_t a = *arena.Allocate(6 * kMiB), b = *arena.Allocate(2 * kMiB), c = *arena.Allocate(4 * kMiB),
                d = *arena.Allocate(2 * kMiB);
  arena.Free(a);
  arena.Free(c);
  EXPECT_EQ(*arena.Allocate(3 * kMiB), c) << "4 of c, not 6 of a or of the rest";
  arena.Free(b);
  EXPECT_EQ(*arena.Allocate(8 * kMiB), a) << "a and b have joined";
  arena.Free(d);
}

TEST(CachingArena, ARestOfAMebibyteStaysWithALargeBlock) {
  CachingArena arena(20 * kMiB);
  ASSERT_TRUE(arena.Allocate(19 * kMiB));
  EXPECT_EQ(arena.Use().free, 0);
  EXPECT_EQ(arena.Use().largest_free, 0);
}

TEST(CachingArena, SegmentsThatAreWhollyFreeGoBackWhenTheMemoryIsOut) {
  CachingArena arena(40 * kMiB);
  const int64_t a = *arena.Allocate(16 * kMiB), b = *arena.Allocate(16 * kMiB);
  arena.Free(a);
  EXPECT_FALSE(arena.Allocate(30 * kMiB));
  arena.Free(b);
  EXPECT_EQ(arena.Use().largest_free, 40 * kMiB);
  EXPECT_TRUE(arena.Allocate(30 * kMiB));
}

// Each segment has one long-lived block. So most of the memory is free, but no large block fits.
TEST(CachingArena, FailsForFragmentationAlone) {
  CachingArena arena(60 * kMiB);
  std::vector<int64_t> passing;
  for (int segment = 0; segment < 3; ++segment) {
    passing.push_back(*arena.Allocate(8 * kMiB));
    ASSERT_TRUE(arena.Allocate(2 * kMiB));
    passing.push_back(*arena.Allocate(9 * kMiB));
  }
  for (const int64_t block : passing) arena.Free(block);
  EXPECT_EQ(arena.Use().free, 54 * kMiB);
  EXPECT_EQ(arena.Use().largest_free, 10 * kMiB);
  EXPECT_FALSE(arena.Allocate(12 * kMiB));
}

TEST(CachingArena, RefusesToFreeWhatItDidNotHandOut) {
  CachingArena arena(20 * kMiB);
  const int64_t block = *arena.Allocate(kMiB);
  EXPECT_THROW(arena.Free(block + 512), std::logic_error);
  arena.Free(block);
  EXPECT_THROW(arena.Free(block), std::logic_error);
}

TEST(CachingArena, RandomBlocksNeverOverlapAndAllComesBack) {
  const unsigned seed = test::TestSeed(1);
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr int64_t kTotal = 64 * kMiB;
  CachingArena arena(kTotal);
  std::map<int64_t, int64_t> blocks;
  int64_t asked = 0;
  for (int round = 0; round < 4000; ++round) {
    if (random() % 5 < 3 || blocks.empty()) {
      const int64_t bytes = 1 + static_cast<int64_t>(random() % (random() % 2 == 0 ? kMiB : 12 * kMiB));
      const int64_t largest = arena.Use().largest_free;
      const auto offset = arena.Allocate(bytes);
      if (!offset) continue;
      EXPECT_LE(bytes, largest);
      const auto next = blocks.lower_bound(*offset);
      if (next != blocks.end()) {
        ASSERT_LE(*offset + bytes, next->first);
      }
      if (next != blocks.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, *offset);
      }
      blocks[*offset] = bytes;
      asked += bytes;
      ASSERT_LE(*offset + bytes, arena.AddressBytes());
    } else {
      const auto block = std::next(blocks.begin(), static_cast<long>(random() % blocks.size()));
      arena.Free(block->first);
      asked -= block->second;
      blocks.erase(block);
    }
    ASSERT_LE(arena.Use().free, kTotal - asked);
  }
  for (const auto& [offset, bytes] : blocks) arena.Free(offset);
  EXPECT_EQ(arena.Use().free, kTotal);
  EXPECT_TRUE(arena.Allocate(kTotal));
}

}  // namespace
}  // namespace dynamiccl::zero
