// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/baselines/probe_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/probe_question.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl::agents {
namespace {

std::vector<ProbeCandidate> Further(const std::vector<TriedConfig>& tried, double in_use = 1,
                                    size_t most = 4) {
  const auto [input, question] = test::ProbeQuestion();
  return FurtherCandidates(nullptr, input, question, tried, in_use, most);
}

// A policy that always prefers Tree/LL may be wrong. So the configs that the cost model alone would try must
// stay among the candidates.
TEST(FirstCandidates, WhatTheCostModelWouldTryIsTriedWhateverThePolicySays) {
  const auto [input, question] = test::ProbeQuestion();
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const auto of_model = FirstCandidates(nullptr, input, question);
  constexpr size_t kBestOfModel = 3;
  const auto candidates = FirstCandidates(policy.get(), input, question, kBestOfModel);
  EXPECT_EQ(candidates[0].config.algorithm, Algorithm::kTree);
  EXPECT_EQ(candidates[0].config.protocol, Protocol::kLL);
  EXPECT_LT(candidates[0].predicted, candidates.back().predicted);
  for (size_t i = 0; i < kBestOfModel; ++i) EXPECT_TRUE(test::Contains(candidates, of_model[i].config)) << i;
}

// The link between the nodes is much faster here. NCCL's own choice must not be a candidate. The candidates
// must be the best five and up to two neighbours.
TEST(FirstCandidates, AreTheBestOfThePriorAndNeighboursInChannels) {
  CostModelInput input;
  input.fabric = {8, 2, 16, {1, 100}, {5, 20}};
  input.constants = NcclHopperConstants(2);
  const ConfigQuestion question{Collective::kAllReduce, 1 << 20, NcclConfigs(Collective::kAllReduce)};
  const auto candidates = FirstCandidates(nullptr, input, question);
  ASSERT_GE(candidates.size(), kBestOfPrior);
  EXPECT_LE(candidates.size(), kBestOfPrior + 2);
  const CollectiveConfig nccl = ConfigContext(input, question).default_config();
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_NE(candidates[i].config, nccl);
    EXPECT_GT(candidates[i].predicted, 0);
    EXPECT_GE(candidates[i].predicted, candidates[i == 0 ? 0 : i - 1].predicted);
  }
}

TEST(FurtherCandidates, NeitherNcclsChoiceNorWhatWasTriedComesAgain) {
  std::vector<TriedConfig> tried;
  const auto [input, question] = test::ProbeQuestion();
  const CollectiveConfig by_default = ConfigContext(input, question).default_config();
  for (int wave = 0; wave < 40; ++wave) {
    const auto next = Further(tried);
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
  const CollectiveConfig seen{Algorithm::kTree, Protocol::kLL128, 16};
  const CollectiveConfig kin{Algorithm::kTree, Protocol::kLL128, 8};
  const auto predicted = [&](double ratio) {
    for (const ProbeCandidate& candidate : Further({{seen, ratio}}, 8, 1000)) {
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
  const auto all = Further({}, 1e6, 1000), few = Further({}, 1, 1000);
  EXPECT_LT(few.size(), all.size());
  for (const ProbeCandidate& candidate : few) EXPECT_LT(candidate.predicted, 2);
  EXPECT_TRUE(Further({}, 1e-3, 1000).empty());
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(),
                             [](const auto& a, const auto& b) { return a.predicted < b.predicted; }));
}

}  // namespace
}  // namespace dynamiccl::agents
