// SPDX-License-Identifier: Apache-2.0
#include "src/collective/size_class.h"

#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

TEST(SizeClass, FourClassesAnOctave) {
  EXPECT_EQ(SizeClassOf(1024).index + 4, SizeClassOf(2048).index);
  EXPECT_EQ(SizeClassOf(1024).index + 1, SizeClassOf(1280).index);
  EXPECT_EQ(SizeClassOf(1279), SizeClassOf(1024));
}

TEST(SizeClass, LowerBoundIsTheFirstByteOfItsClass) {
  for (uint64_t bytes = 2; bytes < (1u << 20); ++bytes) {
    const SizeClass size_class = SizeClassOf(bytes);
    ASSERT_LE(LowerBound(size_class), bytes);
    ASSERT_EQ(SizeClassOf(LowerBound(size_class)), size_class) << bytes;
    ASSERT_LE(SizeClassOf(bytes - 1), size_class) << "order is kept at " << bytes;
  }
}

TEST(SizeClass, HoldsForRandomLargeSizes) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t bytes = (random() >> (random() % 60)) | 4;
    const SizeClass size_class = SizeClassOf(bytes);
    ASSERT_LE(LowerBound(size_class), bytes);
    ASSERT_EQ(SizeClassOf(LowerBound(size_class)), size_class);
    // A class is as wide as a quarter of its octave.
    ASSERT_LE(bytes - LowerBound(size_class), LowerBound(size_class) / 4 + 1);
  }
}

TEST(SizeClass, NamesItsRange) {
  EXPECT_EQ(Name(SizeClassOf(1 << 20)), "1M..1.25M");
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(1536), "1.5K");
}

}  // namespace
}  // namespace dynamiccl
