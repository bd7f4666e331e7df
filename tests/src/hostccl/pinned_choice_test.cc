// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/pinned_choice.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/child_process.h"

namespace dynamiccl::hostccl {
namespace {

bool Allows(const Result<PinnedMasks>& masks, Collective collective, Algorithm algorithm, Protocol protocol) {
  return masks && (*masks)[static_cast<size_t>(collective)].test(ConfigIndex(algorithm, protocol));
}

TEST(PinnedChoice, NothingSetAllowsEverything) {
  const auto masks = MasksOf({});
  ASSERT_TRUE(masks.has_value());
  for (const ConfigMask& mask : *masks) EXPECT_TRUE(mask.all());
}

TEST(PinnedChoice, AListAppliesToAllFunctionsInAnyCase) {
  const auto masks = MasksOf({.algorithms = "ring,TREE"});
  EXPECT_TRUE(Allows(masks, Collective::kAllGather, Algorithm::kRing, Protocol::kLL));
  EXPECT_TRUE(Allows(masks, Collective::kAllReduce, Algorithm::kTree, Protocol::kSimple));
  EXPECT_FALSE(Allows(masks, Collective::kAllReduce, Algorithm::kNvls, Protocol::kSimple));
}

TEST(PinnedChoice, ACaretExcludes) {
  const auto masks = MasksOf({.algorithms = "^Tree", .protocols = "^LL,LL128"});
  EXPECT_FALSE(Allows(masks, Collective::kAllReduce, Algorithm::kTree, Protocol::kSimple));
  EXPECT_FALSE(Allows(masks, Collective::kAllReduce, Algorithm::kRing, Protocol::kLL));
  EXPECT_TRUE(Allows(masks, Collective::kAllReduce, Algorithm::kRing, Protocol::kSimple));
}

TEST(PinnedChoice, EntriesPerFunctionOverrideTheFirst) {
  const auto masks = MasksOf({.algorithms = "ring;allreduce:tree;broadcast:^ring"});
  EXPECT_TRUE(Allows(masks, Collective::kAllReduce, Algorithm::kTree, Protocol::kLL));
  EXPECT_FALSE(Allows(masks, Collective::kAllReduce, Algorithm::kRing, Protocol::kLL));
  EXPECT_FALSE(Allows(masks, Collective::kBroadcast, Algorithm::kRing, Protocol::kLL));
  EXPECT_TRUE(Allows(masks, Collective::kReduce, Algorithm::kRing, Protocol::kLL));
}

TEST(PinnedChoice, UnknownTokensAreErrorsThatQuoteThem) {
  for (const char* text : {"rings", "ring;tree", "allredcue:ring", "ring,", "sendrecv:ring", "allreduce:"}) {
    const auto masks = MasksOf({.algorithms = text});
    ASSERT_FALSE(masks.has_value()) << text;
    EXPECT_NE(masks.error().message.find(text), std::string::npos) << masks.error().message;
  }
}

TEST(PinnedChoice, TheStricterOfTheLimitsHolds) {
  testing_support::InChildProcess([] {
    ::setenv("NCCL_MAX_CTAS", "6", 1);
    ::setenv("NCCL_MAX_NCHANNELS", "3", 1);
    ::setenv("NCCL_MIN_NCHANNELS", "many", 1);
    const ChannelLimits limits = LimitsFromEnvironment({.min = 2, .max = 32});
    EXPECT_EQ(limits.max, 3);
    EXPECT_EQ(limits.min, 2);
  });
  EXPECT_EQ(LimitsFromEnvironment({.max = 32}).max, 32);
}

}  // namespace
}  // namespace dynamiccl::hostccl
