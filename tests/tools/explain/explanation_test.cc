// SPDX-License-Identifier: Apache-2.0
#include "tools/explain/explanation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sample_policy.h"

namespace dynamiccl {
namespace {

ConfigQuestion AllReduceOf(uint64_t bytes) {
  return {Collective::kAllReduce, bytes, NcclConfigs(Collective::kAllReduce)};
}

TEST(Explanation, SaysWhatTheJobWouldDo) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const CostModelInput fabric = AssumedFabric().model;
  for (uint64_t bytes = 1024; bytes <= (64u << 20); bytes *= 4) {
    const ConfigQuestion question = AllReduceOf(bytes);
    const Explanation explanation = Explain(*policy, fabric, question, nullptr);
    const ConfigChoice choice = ChooseConfig(*policy, fabric, question);
    EXPECT_EQ(explanation.choice.config, choice.config);
    EXPECT_EQ(explanation.default_config, choice.default_config);
    if (choice.reason != ChoiceReason::kPromised) continue;
    const auto chosen =
        std::find_if(explanation.configs.begin(), explanation.configs.end(),
                     [&](const ExplainedConfig& config) { return config.config == choice.config; });
    ASSERT_NE(chosen, explanation.configs.end());
    EXPECT_TRUE(chosen->promised);
    EXPECT_NEAR(chosen->predicted_us, choice.predicted_microseconds(), 1e-6 * chosen->predicted_us);
  }
}

// A job decides by size class (EntryFunction). A size inside a class has the decision of the smallest size.
TEST(Explanation, OfASizeInsideAClassIsThatOfTheClass) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  // The training data end at 1 MiB, and the class of 1 MiB ends at 1.25 MiB.
  const auto bytes = static_cast<size_t>(ConfigFeature::kBytes);
  policy->tensors.domain_max[bytes] = 20 * 4096 / 8;
  const CostModelInput fabric = AssumedFabric().model;
  const auto reason = [&](uint64_t size) {
    return Explain(*policy, fabric, AllReduceOf(size), nullptr).choice.reason;
  };
  ASSERT_NE(reason(1 << 20), ChoiceReason::kOutsideTraining);
  EXPECT_EQ(reason(1'300'000), reason(1 << 20));
  EXPECT_EQ(reason(1'310'720), ChoiceReason::kOutsideTraining);
}

// ChooseConfig takes the shortest predicted time among the promised configs.
TEST(Explanation, OfAnyPolicyTheFirstPromisedConfigIsTheChoice) {
  const CostModelInput fabric = AssumedFabric(8, 1).model;
  int promised = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto policy = test::MakeRandomPolicy(seed);
    const Explanation explanation = Explain(*policy, fabric, AllReduceOf(1 << 20), nullptr);
    const auto first = std::find_if(explanation.configs.begin(), explanation.configs.end(),
                                    [](const ExplainedConfig& config) { return config.promised; });
    if (explanation.choice.reason == ChoiceReason::kPromised) {
      ++promised;
      ASSERT_NE(first, explanation.configs.end());
      EXPECT_NEAR(first->predicted_us, explanation.choice.predicted_microseconds(),
                  1e-6 * first->predicted_us);
    } else if (explanation.outside.empty()) {
      EXPECT_TRUE(first == explanation.configs.end());
    }
  }
  RecordProperty("promised", promised);
}

TEST(Explanation, ARuleDecidesInThePolicysPlace) {
  const auto policy = test::MakePolicyThatPrefers(Algorithm::kTree, Protocol::kLL);
  const auto rules = OverrideRules::Parse("# mine\nallreduce,0,1000000,ring,simple,-1,-1,-1\n", "rules.csv");
  ASSERT_TRUE(rules);
  const Explanation small = Explain(*policy, AssumedFabric().model, AllReduceOf(4096), &*rules);
  ASSERT_TRUE(small.rule);
  EXPECT_EQ(small.rule->line, 2);
  EXPECT_FALSE(Explain(*policy, AssumedFabric().model, AllReduceOf(4 << 20), &*rules).rule);
}

}  // namespace
}  // namespace dynamiccl
