// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/size_list.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

using Sizes = std::vector<uint64_t>;

TEST(ParseBytes, UnitsAreBinary) {
  EXPECT_EQ(ParseBytes("8"), 8u);
  EXPECT_EQ(ParseBytes("64K"), 65536u);
  EXPECT_EQ(ParseBytes("1.5m"), 1572864u);
  EXPECT_EQ(ParseBytes("2GB"), uint64_t{2} << 30);
}

TEST(ParseBytes, AnythingElseIsAnError) {
  for (const char* text : {"", "K", "-1", "1X", "1KK", "1 K", "0x10", "nan", "1e300", "8,"}) {
    EXPECT_FALSE(ParseBytes(text).has_value()) << text;
  }
}

TEST(ParseBytesList, SplitsAtCommas) {
  EXPECT_EQ(ParseBytesList("1K,2K"), (Sizes{1024, 2048}));
  EXPECT_FALSE(ParseBytesList("1K,").has_value());
  EXPECT_FALSE(ParseBytesList("").has_value());
}

TEST(SizesOf, FactorAndStep) {
  EXPECT_EQ(SizesOf({.begin = 8, .end = 64, .factor = 2}), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(SizesOf({.begin = 10, .end = 35, .step = 10}), (Sizes{10, 20, 30}));
  EXPECT_EQ(SizesOf({.begin = 8, .end = 8}), (Sizes{8}));
  EXPECT_EQ(SizesOf({.begin = 8, .end = 8, .factor = 1}), (Sizes{8}));
}

TEST(SizesOf, RangesThatDoNotEndAreErrors) {
  EXPECT_FALSE(SizesOf({.begin = 8, .end = 64, .factor = 1}).has_value());
  EXPECT_FALSE(SizesOf({.begin = 8, .end = 64, .step = 0}).has_value());
  EXPECT_FALSE(SizesOf({.begin = 64, .end = 8, .factor = 2}).has_value());
  EXPECT_FALSE(SizesOf({.begin = 0, .end = 64, .factor = 2}).has_value());
  EXPECT_FALSE(SizesOf({.begin = 0, .end = uint64_t{1} << 40, .step = 1}).has_value());
}

}  // namespace
}  // namespace dynamiccl
