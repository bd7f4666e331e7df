// SPDX-License-Identifier: Apache-2.0
#include "src/fingerprint/fixed_log2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

TEST(FixedLog2, IsExactAtPowersOfTwo) {
  for (int octave = 0; octave < 64; ++octave) EXPECT_EQ(FixedLog2<16>(uint64_t{1} << octave), octave << 16);
  EXPECT_EQ(FixedLog2<8>(0), 0);
}

TEST(FixedLog2, FollowsTheRealFunction) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = (random() >> (random() % 64)) | 1;
    const auto exact = static_cast<double>(std::log2(static_cast<long double>(value)) * 65536);
    ASSERT_NEAR(FixedLog2<16>(value), exact, 1.0) << value;
  }
}

TEST(FixedLog2, NeverFalls) {
  int32_t last = 0;
  for (uint64_t value = 1; value < 300'000; ++value) {
    const int32_t now = FixedLog2<16>(value);
    ASSERT_GE(now, last) << value;
    last = now;
  }
}

}  // namespace
}  // namespace dynamiccl
