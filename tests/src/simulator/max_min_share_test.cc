// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/max_min_share.h"

#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

using Transfers = std::vector<std::vector<LinkUse>>;

TEST(MaxMinShare, EqualTransfersShareEqually) {
  EXPECT_EQ(MaxMinSpeeds({10}, Transfers{{{0, 10}}, {{0, 10}}}), (std::vector<double>{0.5, 0.5}));
}

TEST(MaxMinShare, WhatFitsIsNotSlowed) {
  EXPECT_EQ(MaxMinSpeeds({10}, Transfers{{{0, 4}}, {{0, 6}}}), (std::vector<double>{1, 1}));
  EXPECT_EQ(MaxMinSpeeds({10}, Transfers{{}, {{0, 20}}}), (std::vector<double>{1, 0.5}));
}

// The textbook's chain has one transfer over both links and one on each link. Capacity that the long transfer
// leaves goes to the other one.
TEST(MaxMinShare, AFullLinkLeavesTheRestToOthers) {
  const auto speeds = MaxMinSpeeds({10, 30}, Transfers{{{0, 10}, {1, 10}}, {{0, 10}}, {{1, 40}}});
  EXPECT_DOUBLE_EQ(speeds[0], 0.5);
  EXPECT_DOUBLE_EQ(speeds[1], 0.5);
  EXPECT_DOUBLE_EQ(speeds[2], 25.0 / 40);
}

struct RandomCase {
  std::vector<double> capacities;
  Transfers transfers;
};

RandomCase MakeCase(uint64_t seed) {
  std::mt19937_64 random(seed);
  RandomCase one;
  const size_t links = 1 + random() % 6, transfers = 1 + random() % 9;
  for (size_t i = 0; i < links; ++i) one.capacities.push_back(1 + static_cast<double>(random() % 100));
  for (size_t i = 0; i < transfers; ++i) {
    one.transfers.emplace_back();
    for (size_t link = 0; link < links; ++link)
      if (random() % 2 == 0) one.transfers.back().push_back({link, static_cast<double>(1 + random() % 60)});
  }
  return one;
}

std::vector<double> Carried(const RandomCase& one, const std::vector<double>& speeds) {
  std::vector<double> carried(one.capacities.size());
  for (size_t i = 0; i < speeds.size(); ++i)
    for (const LinkUse& use : one.transfers[i]) carried[use.link] += speeds[i] * use.used;
  return carried;
}

// By definition, every transfer below full speed has a full link on which no transfer is faster.
TEST(MaxMinShare, EveryTransferHasItsBottleneck) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const RandomCase one = MakeCase(seed);
    const auto speeds = MaxMinSpeeds(one.capacities, one.transfers);
    const auto carried = Carried(one, speeds);
    for (size_t link = 0; link < carried.size(); ++link)
      ASSERT_LE(carried[link], one.capacities[link] * (1 + 1e-8)) << "seed " << seed;
    for (size_t i = 0; i < speeds.size(); ++i) {
      ASSERT_GT(speeds[i], 0);
      ASSERT_LE(speeds[i], 1);
      bool bottleneck = speeds[i] == 1;
      for (const LinkUse& use : one.transfers[i]) {
        double fastest = 0;
        for (size_t j = 0; j < speeds.size(); ++j)
          for (const LinkUse& other : one.transfers[j])
            if (other.link == use.link) fastest = std::max(fastest, speeds[j]);
        const bool full = carried[use.link] >= one.capacities[use.link] * (1 - 1e-8);
        bottleneck = bottleneck || (full && speeds[i] >= fastest * (1 - 1e-8));
      }
      ASSERT_TRUE(bottleneck) << "seed " << seed << " transfer " << i;
    }
  }
}

}  // namespace
}  // namespace dynamiccl
