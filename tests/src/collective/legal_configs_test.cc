// SPDX-License-Identifier: Apache-2.0
#include "src/collective/legal_configs.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

TEST(LegalConfigs, FollowNcclsTable) {
  EXPECT_EQ(NcclConfigs(Collective::kBroadcast).count(), 3u) << "Ring with three protocols and nothing else";
  EXPECT_EQ(NcclConfigs(Collective::kReduce).count(), 3u);
  EXPECT_FALSE(
      NcclConfigs(Collective::kReduceScatter).test(ConfigIndex(Algorithm::kTree, Protocol::kSimple)));
  EXPECT_TRUE(NcclConfigs(Collective::kAllReduce).test(ConfigIndex(Algorithm::kTree, Protocol::kLL)));
  EXPECT_FALSE(NcclConfigs(Collective::kAllReduce).test(ConfigIndex(Algorithm::kPat, Protocol::kSimple)));
  EXPECT_TRUE(NcclConfigs(Collective::kAllGather).test(ConfigIndex(Algorithm::kPat, Protocol::kSimple)));
  EXPECT_TRUE(NcclConfigs(Collective::kSend).none());
}

TEST(LegalConfigs, ChannelsArePowersOfTwoAndTheMaximum) {
  ConfigMask only_ring_simple;
  only_ring_simple.set(ConfigIndex(Algorithm::kRing, Protocol::kSimple));
  const auto configs = EnumerateConfigs(only_ring_simple, 6);
  ASSERT_EQ(configs.size(), 4u);
  EXPECT_EQ(configs[2].channels, 4);
  EXPECT_EQ(configs[3].channels, 6);
  EXPECT_EQ(configs[3].algorithm, Algorithm::kRing);
  EXPECT_EQ(configs[3].protocol, Protocol::kSimple);
}

TEST(DescribedMask, NamesAlgorithmsWithTheirProtocolsAndFitsAMessage) {
  ConfigMask mask;
  mask.set(ConfigIndex(Algorithm::kTree, Protocol::kLL))
      .set(ConfigIndex(Algorithm::kTree, Protocol::kSimple));
  mask.set(ConfigIndex(Algorithm::kPat, Protocol::kSimple));
  EXPECT_EQ(Describe(mask), "Tree:LL,Simple PAT:Simple");
  EXPECT_EQ(Describe(ConfigMask()), "nothing");
  for (int c = 0; c < kTunableCollectives; ++c)
    EXPECT_LE(Describe(NcclConfigs(static_cast<Collective>(c))).size(), 128u);
}

}  // namespace
}  // namespace dynamiccl
