// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/unreachable_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace dynamiccl {
namespace {

OverrideRule RuleOf(int line, uint64_t min_bytes, uint64_t max_bytes, std::optional<int> n_ranks = {}) {
  OverrideRule rule;
  rule.line = line;
  rule.min_bytes = min_bytes;
  rule.max_bytes = max_bytes;
  rule.n_ranks = n_ranks;
  return rule;
}

TEST(UnreachableRules, NamesTheRuleAndTheOneBeforeIt) {
  const auto found = UnreachableRules({RuleOf(3, 0, 100, 8), RuleOf(4, 0, 1000), RuleOf(7, 10, 20, 4)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 7);
  EXPECT_EQ(found[0].taken_by_line, 4);
}

TEST(UnreachableRules, NarrowRulesBeforeWideOnesAreFine) {
  EXPECT_TRUE(UnreachableRules({RuleOf(1, 10, 20), RuleOf(2, 0, 100), RuleOf(3, 50, 200)}).empty());
  OverrideRule other = RuleOf(2, 0, 100);
  other.collective = Collective::kReduceScatter;
  EXPECT_TRUE(UnreachableRules({RuleOf(1, 0, 100), other}).empty());
}

// The reference asks the rules in order about every subject of a small world.
TEST(UnreachableRules, NoNamedRuleIsEverTheFirstToMatch) {
  std::mt19937_64 random(17);
  const auto below = [&](uint64_t n) { return random() % n; };
  size_t named = 0;
  std::vector<RuleSubject> places;
  for (const Phase phase : {Phase::kUnknown, Phase::kBackward}) {
    for (const ZeroStage stage : {ZeroStage::kUnknown, ZeroStage::kStage3}) {
      for (const MemoryPressure memory : {MemoryPressure::kUnknown, MemoryPressure::kHigh})
        places.push_back({.phase = phase, .stage = stage, .memory = memory});
    }
  }
  for (int round = 0; round < 500; ++round) {
    std::vector<OverrideRule> rules;
    for (int line = 1; line <= 6; ++line) {
      const uint64_t from = below(6);
      rules.push_back(RuleOf(line, from, from + below(6)));
      if (below(2) == 0) rules.back().n_ranks = static_cast<int>(1 + below(2));
      if (below(3) == 0) rules.back().phase = Phase::kBackward;
      if (below(3) == 0) rules.back().stage = ZeroStage::kStage3;
      if (below(3) == 0) rules.back().memory = MemoryPressure::kHigh;
      if (below(2) == 0) rules.back().role = below(2) == 0 ? Role::kScalar : Role::kParameterGather;
    }
    for (const UnreachableRule& unreachable : UnreachableRules(rules)) {
      ++named;
      for (uint64_t bytes = 0; bytes < 12; ++bytes) {
        for (const int n_ranks : {1, 2, 3}) {
          for (const Role role : {Role::kScalar, Role::kParameterGather, Role::kUnknown}) {
            for (RuleSubject subject : places) {
              subject.bytes = bytes;
              subject.n_ranks = n_ranks;
              subject.role = role;
              const auto first = std::find_if(rules.begin(), rules.end(), [&](const OverrideRule& rule) {
                return rule.Matches(subject);
              });
              EXPECT_TRUE(first == rules.end() || first->line != unreachable.line);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(named, 100u);
}

}  // namespace
}  // namespace dynamiccl
