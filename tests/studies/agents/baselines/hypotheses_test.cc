// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/baselines/hypotheses.h"

#include <gtest/gtest.h>

#include <random>

namespace dynamiccl::agents {
namespace {

// ReduceScatters of 1 to 16 MiB on which Ring/Simple takes `factor` times as long as PAT/Simple.
std::vector<SweptKey> Keys(double factor, double noise) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  MeasurementFile file{"", "", "", {{"t", {}}}, {}};
  for (uint64_t bytes = 1 << 20; bytes <= 16 << 20; bytes *= 2) {
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kPat}) {
      Measurement row{"t", Collective::kReduceScatter, bytes, {algorithm, Protocol::kSimple, 1}, false, {}};
      const double us = 100 * (algorithm == Algorithm::kRing ? factor : 1);
      for (int i = 0; i < 12; ++i)
        row.microseconds.push_back(static_cast<float>(us * std::exp(noise * normal(random))));
      file.rows.push_back(std::move(row));
    }
  }
  return KeysOf({file});
}

const ConfigClaim& RingSimple() {
  return ConfigClaims().front();
}

TEST(JudgeClaim, SaysTrueFalseAndLevelAsTheTimesAre) {
  const ClaimResult faster = JudgeClaim(RingSimple(), "t", Keys(0.8, 0.03));
  EXPECT_EQ(faster.verdict, Verdict::kTrue);
  EXPECT_EQ(faster.keys, 5u);
  EXPECT_EQ(faster.wins, 5u);
  EXPECT_NEAR(faster.advantage, -std::log(0.8), 0.03);
  EXPECT_EQ(JudgeClaim(RingSimple(), "t", Keys(1.25, 0.03)).verdict, Verdict::kFalse);
  EXPECT_EQ(JudgeClaim(RingSimple(), "t", Keys(1.0001, 0.2)).verdict, Verdict::kLevel);
}

TEST(JudgeClaim, CannotTellWithoutBothSidesOrWithoutSpread) {
  EXPECT_EQ(JudgeClaim(RingSimple(), "elsewhere", Keys(0.8, 0.03)).verdict, Verdict::kCannotTell);
  EXPECT_EQ(JudgeClaim(RingSimple(), "t", Keys(0.8, 0)).verdict, Verdict::kCannotTell);
  for (const ConfigClaim& claim : ConfigClaims()) {
    if (claim.collectives.front() == Collective::kAllGather) {
      EXPECT_EQ(JudgeClaim(claim, "t", Keys(0.8, 0.03)).keys, 0u);
    }
  }
}

TEST(FormatHypotheses, HasEveryClaimAndRefusesAnotherJson) {
  const auto page = FormatHypotheses(Keys(0.8, 0.03), "");
  ASSERT_TRUE(page);
  for (const ConfigClaim& claim : ConfigClaims()) EXPECT_NE(page->find(claim.name), std::string::npos);
  EXPECT_NE(page->find("| t | **true** | 5 | 5 |"), std::string::npos);
  EXPECT_FALSE(FormatHypotheses(Keys(0.8, 0.03), "{}"));
}

}  // namespace
}  // namespace dynamiccl::agents
