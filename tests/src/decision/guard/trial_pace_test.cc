// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/trial_pace.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

// A job of two equal keys after `calls` of each, with `credit` calls a key to pay for trials.
TrialFunds FundsOf(double calls, double credit) {
  TrialFunds funds;
  funds.credit_ns = credit * 2'000;
  funds.call_of_each_key_ns = 2'000;
  funds.total_ns = calls * 2'000;
  return funds;
}
// `trial`: what one costs, in calls.
TriedKey KeyOf(double trial, double gain = 0.1) {
  return {6, trial * 1'000, gain * 100 * 1'000, 100};
}
// What the trials of a key cost, over its calls' time.
double CostOf(const TriedKey& key, uint16_t rest) {
  return 3 * key.trial_ns / 1'000 / (4 + rest);
}

TEST(TrialPace, WithoutCreditTrialsCostTheBudgetAlone) {
  const std::vector<TriedKey> keys{KeyOf(0.3), KeyOf(0.3)};
  const auto rests = RestsBetweenTrials(keys, FundsOf(100, 0));
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(CostOf(keys[i], rests[i]), kFirstProbingBudget, 1e-4) << i;
}

TEST(TrialPace, TheBudgetIsHalfAsLargeInTheFirstThousandCalls) {
  EXPECT_DOUBLE_EQ(ProbingBudgetNs(500 * 2'000, 2'000), 2.5 * 2'000);
  EXPECT_DOUBLE_EQ(ProbingBudgetNs(3'000 * 2'000, 2'000), (5 + 20) * 2'000);
}

TEST(TrialPace, AKeyAloneMaySpendWhatTheOthersDoNot) {
  const auto rests = RestsBetweenTrials({KeyOf(0.3)}, FundsOf(100, 0));
  EXPECT_NEAR(CostOf(KeyOf(0.3), rests[0]), 2 * kFirstProbingBudget, 2e-4);
}

TEST(TrialPace, TheKeyThatMayWinMostGetsMost) {
  const std::vector<TriedKey> keys{KeyOf(0.3, 0.3), KeyOf(0.3, 0.1)};
  const auto rests = RestsBetweenTrials(keys, FundsOf(100, 0));
  EXPECT_NEAR(CostOf(keys[0], rests[0]) / CostOf(keys[1], rests[1]), 3, 0.1);
}

// However much was earned, until the fabric changes.
TEST(TrialPace, NeverMoreThanFivePercentBeforeAChange) {
  TrialFunds funds = FundsOf(100'000, 1'000);
  std::vector<TriedKey> keys{KeyOf(0.3), KeyOf(0.3)};
  for (TriedKey& key : keys) key.calls = 100'000;
  for (const uint16_t rest : RestsBetweenTrials(keys, funds)) EXPECT_NEAR(CostOf(keys[0], rest), 0.05, 5e-3);
  funds.after_change = true;
  for (const uint16_t rest : RestsBetweenTrials(keys, funds)) EXPECT_EQ(rest, 0);
  funds.credit_ns = 2'000;
  for (const uint16_t rest : RestsBetweenTrials(keys, funds)) EXPECT_GT(rest, 0) << "not enough was earned";
}

TEST(TrialPace, WhatCostsNothingComesAtOnce) {
  EXPECT_EQ(RestsBetweenTrials({KeyOf(0.001)}, FundsOf(100, 0.5))[0], 0);
}

}  // namespace
}  // namespace dynamiccl
