// SPDX-License-Identifier: Apache-2.0
#include "src/hostccl/call_choice.h"

#include <gtest/gtest.h>

namespace dynamiccl::hostccl {
namespace {

CallChoice Read(const ncclCollConfig_t& config) {
  const auto choice = ReadCallConfig(&config, Collective::kAllReduce);
  EXPECT_TRUE(choice.has_value());
  return choice ? *choice : CallChoice();
}

// As in NCCL, a setting that must not affect neighbouring calls isolates a call. A profiler tag does not.
TEST(CallChoice, WhatIsolatesACallFromItsNeighbours) {
  const ncclCollConfig_t plain = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  EXPECT_FALSE(Read(plain).isolated);
  EXPECT_FALSE(ReadCallConfig(nullptr, Collective::kAllReduce)->isolated);
  ncclCollConfig_t config = plain;
  config.userProfilerTag = 5;
  config.cgaClusterSize = 2;
  EXPECT_FALSE(Read(config).isolated);
  EXPECT_EQ(Read(config).user_tag, 5u);
  for (int ncclCollConfig_t::*const member : {&ncclCollConfig_t::minCTAs, &ncclCollConfig_t::maxCTAs,
                                              &ncclCollConfig_t::nvlsCTAs, &ncclCollConfig_t::CTAPolicy}) {
    config = plain;
    config.*member = 1;
    EXPECT_TRUE(Read(config).isolated);
  }
  config = plain;
  config.algSelection = "RING";
  EXPECT_TRUE(Read(config).isolated);
}

TEST(CallChoice, ChannelsStayWithinTheCallsAndTheCommunicatorsLimits) {
  CallChoice choice;
  EXPECT_EQ(ChannelsWithin(choice, 5, 8), 5);
  choice.max_channels = 2;
  EXPECT_EQ(ChannelsWithin(choice, 5, 8), 2);
  choice = {};
  choice.min_channels = 7;
  EXPECT_EQ(ChannelsWithin(choice, 5, 8), 7);
  EXPECT_EQ(ChannelsWithin(choice, 5, 6), 6) << "what the communicator has set up";
}

TEST(CallChoice, TheEnvironmentWinsOverASelection) {
  CallChoice choice;
  choice.selection.set(ConfigIndex(Algorithm::kRing, Protocol::kSimple));
  ConfigMask allowed;
  allowed.set(ConfigIndex(Algorithm::kTree, Protocol::kLL));
  EXPECT_TRUE(Selected(choice, allowed, false).none());
  EXPECT_EQ(Selected(choice, allowed, true), allowed);
}

}  // namespace
}  // namespace dynamiccl::hostccl
