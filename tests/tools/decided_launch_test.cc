// SPDX-License-Identifier: Apache-2.0
#include "tools/record/decided_launch.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

std::string Metric(const char* decided_by, int count, int rank) {
  return fmt::format(
      "dynamiccl_decisions_total{{collective=\"AllReduce\",decided_by=\"{}\",rank=\"{}\"}} {}\n", decided_by,
      rank, count);
}

TEST(DecisionsIn, TakesTheLowestRankThatWasAsked) {
  EXPECT_FALSE(DecisionsIn({}));
  EXPECT_FALSE(DecisionsIn({"dynamiccl_info{rank=\"0\"} 1\n"}));
  const auto account = DecisionsIn(
      {Metric("policy", 7, 1), Metric("policy", 45, 0) + Metric("nccl", 15, 0), Metric("nccl", 9, 2)});
  ASSERT_TRUE(account);
  EXPECT_EQ(account->rank, 0);
  EXPECT_EQ(account->calls(), 60u);
  EXPECT_EQ(Describe(*account), "rank 0: of 60 calls the policy chose for 45, and 15 were left to NCCL");
}

TEST(DecisionsIn, SaysWhatTheGuardDid) {
  const auto account =
      DecisionsIn({Metric("policy", 5, 3) + Metric("guard", 4, 3) + Metric("trial", 3, 3) +
                   Metric("sample", 2, 3) + Metric("rule", 1, 3) +
                   "dynamiccl_table_versions_total{reason=\"slower_than_NCCL\",rank=\"3\"} 2\n"
                   "dynamiccl_table_versions_total{reason=\"trials_begin\",rank=\"3\"} 6\n"});
  ASSERT_TRUE(account);
  EXPECT_EQ(
      Describe(*account),
      "rank 3: of 15 calls the policy chose for 5, rules for 1, the guard for 4, its trials for 3, and 2 "
      "were left to NCCL; the guard took choices back 2 times");
}

}  // namespace
}  // namespace dynamiccl
