// SPDX-License-Identifier: Apache-2.0
#include "src/policy/probe_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

bool Contains(const std::vector<ProbeCandidate>& candidates, const CollectiveConfig& config) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const ProbeCandidate& candidate) { return candidate.config == config; });
}

// A policy that puts Tree and LL above all else may be wrong where it stands: what the cost model alone would
// try stays among the candidates.
TEST(ProbeCandidates, WhatTheCostModelWouldTryIsTriedWhateverThePolicySays) {
  CostModelInput input;
  input.fabric = {8, 2, 16, {1, 100}, {5, 20}};
  input.constants = NcclHopperConstants(2);
  const ConfigQuestion question{Collective::kAllReduce, 64 << 20, NcclConfigs(Collective::kAllReduce)};
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const auto of_model = ProbeCandidates(nullptr, input, question);
  constexpr size_t kBestOfModel = 3;
  const auto candidates = ProbeCandidates(policy.get(), input, question, kBestOfModel);
  EXPECT_EQ(candidates[0].config.algorithm, Algorithm::kTree);
  EXPECT_EQ(candidates[0].config.protocol, Protocol::kLL);
  EXPECT_LT(candidates[0].predicted, candidates.back().predicted);
  for (size_t i = 0; i < kBestOfModel; ++i) EXPECT_TRUE(Contains(candidates, of_model[i].config)) << i;
}

}  // namespace
}  // namespace dynamiccl
