// SPDX-License-Identifier: Apache-2.0
#include "src/policy/probe_candidates.h"

#include <gtest/gtest.h>

#include "tests/support/probe_question.h"

namespace dynamiccl {
namespace {

// NCCL's cost table shows which pair NCCL itself uses, even if the model expects another one.
TEST(UnlikeFirst, NcclsOwnPairComesFirstHoweverTheModelPricesIt) {
  const auto [input, question] = test::ProbeQuestion();
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
  const auto [input, question] = test::ProbeQuestion();
  const CollectiveConfig expected = ConfigContext(input, question).default_config();
  EXPECT_FALSE(test::Contains(UnlikeFirst(nullptr, input, question), expected));
  EXPECT_TRUE(test::Contains(UnlikeFirst(nullptr, input, question, {kLeaveNcclAlone, false}), expected));
}

}  // namespace
}  // namespace dynamiccl
