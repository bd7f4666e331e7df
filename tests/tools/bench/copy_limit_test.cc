// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/copy_limit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace dynamiccl {
namespace {

using enum TestedCollective;

TEST(CopyLimit, IsTheDocumentedFormula) {
  for (const int n : {2, 3, 4, 8}) {
    const double c = 30;
    EXPECT_DOUBLE_EQ(CopyLimit(kAllGather, n, false, c), c / n);
    EXPECT_DOUBLE_EQ(CopyLimit(kReduceScatter, n, false, c), c / n * 2 / (1 + 1.0 / n));
    // An AllReduce is a reduce-scatter and then the gather of the n - 1 parts that a rank lacks.
    const double series = 1 / (1 / CopyLimit(kReduceScatter, n, false, c) + (n - 1) / c);
    EXPECT_DOUBLE_EQ(CopyLimit(kAllReduce, n, false, c), series);
  }
  EXPECT_DOUBLE_EQ(CopyLimit(kAllReduce, 2, false, 29.25), 11.7);
  EXPECT_DOUBLE_EQ(CopyLimit(kAllGather, 2, true, 30), 30);
  EXPECT_TRUE(std::isinf(CopyLimit(kAllReduce, 1, true, 30)));
}

TEST(FootprintBytes, IsAllRanksBuffers) {
  EXPECT_EQ(FootprintBytes(kAllReduce, LayoutOfArgument(kAllReduce, 100, 4), 4, 4), 3200);
  EXPECT_EQ(FootprintBytes(kAllGather, LayoutOfArgument(kAllGather, 100, 4), 4, 4), 4 * 2000);
  EXPECT_EQ(FootprintBytes(kReduce, LayoutOfArgument(kReduce, 100, 4), 4, 4), 2000);
}

TEST(CopyOnce, BothKindsCopy) {
  alignas(64) std::byte from[640];
  for (size_t i = 0; i < sizeof(from); ++i) from[i] = static_cast<std::byte>(i * 7);
  for (const CopyKind kind : {CopyKind::kMemcpy, CopyKind::kStreaming}) {
    alignas(64) std::byte to[640] = {};
    CopyOnce(kind, to, from, 576);
    EXPECT_EQ(std::memcmp(to, from, 576), 0);
    EXPECT_EQ(to[576], std::byte{0}) << "wrote beyond the end";
  }
}

}  // namespace
}  // namespace dynamiccl
