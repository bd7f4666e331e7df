// SPDX-License-Identifier: Apache-2.0
#include "src/fingerprint/fingerprint.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace dynamiccl {
namespace {

CollectiveCall Call(Collective collective, uint64_t bytes) {
  CollectiveCall call;
  call.collective = collective;
  call.bytes = bytes;
  return call;
}

TEST(Fingerprint, CountsCallsAndBytesByCollective) {
  const std::vector<CollectiveCall> window = {
      Call(Collective::kAllReduce, 4), Call(Collective::kAllReduce, 1024), Call(Collective::kAllGather, 0)};
  const Fingerprint fingerprint = Summarise(window);
  EXPECT_EQ(fingerprint.calls, 3u);
  EXPECT_EQ(fingerprint.count[static_cast<size_t>(Collective::kAllReduce)], 2u);
  EXPECT_EQ(fingerprint.bytes[static_cast<size_t>(Collective::kAllReduce)], 1028u);
  EXPECT_EQ(fingerprint.sizes[static_cast<size_t>(Collective::kAllReduce)][10], 1u);
  EXPECT_EQ(fingerprint.sizes[static_cast<size_t>(Collective::kAllGather)][0], 1u);
}

TEST(Fingerprint, CallsOutsideTheVocabularyAreNotCounted) {
  EXPECT_EQ(Summarise(std::vector<CollectiveCall>{Call(static_cast<Collective>(kCollectives), 4)}),
            Fingerprint{});
}

TEST(RelativeHistogram, IsTheSameForAModelTwiceAsWide) {
  std::vector<CollectiveCall> narrow, wide;
  for (uint64_t bytes : {1u << 16, 1u << 14, 1u << 20}) {
    narrow.push_back(Call(Collective::kReduceScatter, bytes));
    wide.push_back(Call(Collective::kReduceScatter, bytes * 4));
  }
  EXPECT_EQ(RelativeHistogram(Summarise(narrow)), RelativeHistogram(Summarise(wide)));
  const Histogram histogram = RelativeHistogram(Summarise(narrow));
  EXPECT_NEAR(std::accumulate(histogram.begin(), histogram.end(), 0.0f), 1.0f, 1e-6f);
  EXPECT_EQ(RelativeHistogram(Fingerprint{}), Histogram{});
}

TEST(RelativeHistogram, CountsEveryExchangeAsSendRecv) {
  const auto of = [](Collective collective) {
    return RelativeHistogram(Summarise(std::vector<CollectiveCall>{Call(collective, 1024)}));
  };
  EXPECT_EQ(of(Collective::kAllToAll), of(Collective::kSendRecv));
  EXPECT_EQ(of(Collective::kGather), of(Collective::kSendRecv));
  EXPECT_NE(of(Collective::kSend), of(Collective::kSendRecv));
}

}  // namespace
}  // namespace dynamiccl
