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

struct Asked {
  CostModelInput input;
  ConfigQuestion question{Collective::kAllReduce, 64 << 20, NcclConfigs(Collective::kAllReduce)};

  Asked() {
    input.fabric = {8, 2, 16, {1, 100}, {5, 20}};
    input.constants = NcclHopperConstants(2);
  }
  std::vector<ProbeCandidate> Further(const std::vector<TriedConfig>& tried, double in_use = 1,
                                      size_t most = 4) const {
    return FurtherCandidates(nullptr, input, question, tried, in_use, most);
  }
};

// A policy that puts Tree and LL above all else may be wrong where it stands: what the cost model alone would
// try stays among the candidates.
TEST(ProbeCandidates, WhatTheCostModelWouldTryIsTriedWhateverThePolicySays) {
  const auto [input, question] = Asked();
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const auto of_model = ProbeCandidates(nullptr, input, question);
  constexpr size_t kBestOfModel = 3;
  const auto candidates = ProbeCandidates(policy.get(), input, question, kBestOfModel);
  EXPECT_EQ(candidates[0].config.algorithm, Algorithm::kTree);
  EXPECT_EQ(candidates[0].config.protocol, Protocol::kLL);
  EXPECT_LT(candidates[0].predicted, candidates.back().predicted);
  for (size_t i = 0; i < kBestOfModel; ++i) EXPECT_TRUE(Contains(candidates, of_model[i].config)) << i;
}

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

TEST(FurtherCandidates, NeitherNcclsChoiceNorWhatWasTriedComesAgain) {
  const Asked asked;
  std::vector<TriedConfig> tried;
  const CollectiveConfig by_default = ConfigContext(asked.input, asked.question).default_config();
  for (int wave = 0; wave < 40; ++wave) {
    const auto next = asked.Further(tried);
    if (next.empty()) return;
    EXPECT_LE(next.size(), 4u);
    for (const ProbeCandidate& candidate : next) {
      EXPECT_NE(candidate.config, by_default);
      for (const TriedConfig& one : tried) EXPECT_NE(candidate.config, one.config);
      tried.push_back({candidate.config, candidate.predicted});
    }
  }
  FAIL() << "it goes on for ever";
}

TEST(FurtherCandidates, WhatIsFasterThanPredictedSpeaksForItsKin) {
  const Asked asked;
  const CollectiveConfig seen{Algorithm::kTree, Protocol::kLL128, 16};
  const CollectiveConfig kin{Algorithm::kTree, Protocol::kLL128, 8};
  const auto predicted = [&](double ratio) {
    for (const ProbeCandidate& candidate : asked.Further({{seen, ratio}}, 8, 1000)) {
      if (candidate.config == kin) return candidate.predicted;
    }
    return 0.0;
  };
  const double fast = predicted(0.25), slow = predicted(4);
  ASSERT_GT(fast, 0);
  ASSERT_GT(slow, 0);
  EXPECT_LT(fast, 0.5 * slow);
}

TEST(FurtherCandidates, WhatIsBelievedToBeFarBehindWhatIsInUseIsLeftOut) {
  const Asked asked;
  const auto all = asked.Further({}, 1e6, 1000), few = asked.Further({}, 1, 1000);
  EXPECT_LT(few.size(), all.size());
  for (const ProbeCandidate& candidate : few) EXPECT_LT(candidate.predicted, 2);
  EXPECT_TRUE(asked.Further({}, 1e-3, 1000).empty());
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(),
                             [](const auto& a, const auto& b) { return a.predicted < b.predicted; }));
}

}  // namespace
}  // namespace dynamiccl
