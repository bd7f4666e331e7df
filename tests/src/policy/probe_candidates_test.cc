// SPDX-License-Identifier: Apache-2.0
#include "src/policy/probe_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dynamiccl {
namespace {

bool Contains(const std::vector<ProbeCandidate>& candidates, const CollectiveConfig& config) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const ProbeCandidate& candidate) { return candidate.config == config; });
}

struct Asked {
  CostModelInput input;
  ConfigQuestion question{Collective::kAllReduce, 64 << 20, NcclConfigs(Collective::kAllReduce)};

  Asked() {
    input.fabric = {8, 2, 16, {1, 100}, {5, 20}};
    input.constants = NcclHopperConstants(2);
  }
};

// What NCCL itself uses is known from its cost table, although the model expects something else of it.
TEST(UnlikeFirst, NcclsOwnPairComesFirstHoweverTheModelPricesIt) {
  const auto [input, question] = Asked();
  const CollectiveConfig tree_ll{Algorithm::kTree, Protocol::kLL, 0};
  const auto candidates = UnlikeFirst(nullptr, input, question, {tree_ll, true});
  ASSERT_GT(candidates.size(), 2u);
  EXPECT_TRUE(candidates[0].of_nccls_pair);
  EXPECT_NE(UnlikeFirst(nullptr, input, question)[0].config, candidates[0].config);
  for (const ProbeCandidate& candidate : candidates) {
    const bool is_pair =
        candidate.config.algorithm == Algorithm::kTree && candidate.config.protocol == Protocol::kLL;
    EXPECT_EQ(candidate.of_nccls_pair, is_pair) << Describe(candidate.config);
  }
}

TEST(UnlikeFirst, WhatTheModelExpectsOfNcclIsTriedIfItsChannelsAreNotKnown) {
  const auto [input, question] = Asked();
  const CollectiveConfig expected = ConfigContext(input, question).default_config();
  EXPECT_FALSE(Contains(UnlikeFirst(nullptr, input, question), expected));
  EXPECT_TRUE(Contains(UnlikeFirst(nullptr, input, question, {kLeaveNcclAlone, false}), expected));
}

}  // namespace
}  // namespace dynamiccl
