// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/structure/structure_forest.h"

#include <gtest/gtest.h>

#include <numeric>

namespace dynamiccl::agents {
namespace {

CollectiveCall Call(Collective collective, uint64_t bytes) {
  CollectiveCall call;
  call.collective = collective;
  call.bytes = bytes;
  return call;
}

TEST(RelativeHistogram, IsTheSameForAModelTwiceAsWide) {
  std::deque<CollectiveCall> narrow, wide;
  for (uint64_t bytes : {1u << 16, 1u << 14, 1u << 20}) {
    narrow.push_back(Call(Collective::kReduceScatter, bytes));
    wide.push_back(Call(Collective::kReduceScatter, bytes * 4));
  }
  EXPECT_EQ(RelativeHistogram(narrow), RelativeHistogram(wide));
  const Histogram histogram = RelativeHistogram(narrow);
  EXPECT_NEAR(std::accumulate(histogram.begin(), histogram.end(), 0.0f), 1.0f, 1e-6f);
  EXPECT_EQ(RelativeHistogram({}), Histogram{});
}

TEST(RelativeHistogram, CountsEveryExchangeAsSendRecv) {
  const auto of = [](Collective collective) { return RelativeHistogram({Call(collective, 1024)}); };
  EXPECT_EQ(of(Collective::kAllToAll), of(Collective::kSendRecv));
  EXPECT_EQ(of(Collective::kGather), of(Collective::kSendRecv));
  EXPECT_NE(of(Collective::kSend), of(Collective::kSendRecv));
}

}  // namespace
}  // namespace dynamiccl::agents
