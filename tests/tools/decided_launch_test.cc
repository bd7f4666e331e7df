// SPDX-License-Identifier: Apache-2.0
#include "tools/record/decided_launch.h"

#include <gmock/gmock.h>

#include "tools/record/found_choices.h"

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

SiteKey KeyOf(Collective collective, uint64_t bytes) {
  return {.key = {.collective = collective, .size_class = SizeClassOf(bytes)}};
}

TEST(DescribeFound, NamesWhatThisJobConfirmed) {
  constexpr CollectiveConfig kOneChannel{Algorithm::kRing, Protocol::kSimple, 1};
  SiteStore before;
  before.Learn(KeyOf(Collective::kAllReduce, 1 << 20), {.config = kOneChannel, .pairs = 9, .runs = 1});
  EXPECT_EQ(DescribeFound(before, before, "keep", {}), "nothing was confirmed");

  SiteStore after = before;
  after.Learn(KeyOf(Collective::kAllGather, 200'000), {.config = kLeaveNcclAlone, .pairs = 9, .runs = 1});
  EXPECT_EQ(DescribeFound(before, after, "keep", {}),
            "nothing better than NCCL's choice was found for 1 kinds of call");

  after.Learn(KeyOf(Collective::kReduceScatter, 200'000), {.config = kOneChannel, .pairs = 9, .runs = 1});
  EXPECT_EQ(DescribeFound(before, after, "keep", {}),
            "found better than NCCL's choice: ReduceScatter of 192K..224K Ring Simple x1; keep");
  for (const uint64_t bytes : {1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 22})
    after.Learn(KeyOf(Collective::kAllReduce, bytes), {.config = kOneChannel, .pairs = 9, .runs = 1});
  EXPECT_THAT(DescribeFound(before, after, "", {}), ::testing::EndsWith("and 2 more"));
}

std::string Versions(int begun, int ended) {
  return fmt::format(
      "dynamiccl_table_versions_total{{reason=\"trials_begin\"}} {}\n"
      "dynamiccl_table_versions_total{{reason=\"steps_have_changed\"}} {}\n",
      begun, ended);
}

TEST(DescribeFound, SaysWhyNothingWasConfirmed) {
  const SiteStore none;
  const auto why = [&](const std::vector<std::string>& metrics) {
    return DescribeFound(none, none, "keep", ExperimentsIn(metrics));
  };
  EXPECT_EQ(why({}), "nothing was confirmed");
  EXPECT_EQ(
      why({Versions(0, 0)}),
      "nothing was confirmed: no experiment began, which takes seven steps in a row with the same calls, "
      "and 14 calls");
  EXPECT_EQ(why({Versions(0, 0), Versions(2, 0)}),
            "nothing was confirmed: the job ended before its experiment had a result");
  EXPECT_EQ(why({Versions(0, 0) + Metric("trial", 87, 0), Versions(0, 0) + Metric("trial", 87, 1)}),
            "nothing was confirmed: the job ended before its experiment had a result")
      << "trials of a choice that an earlier job confirmed";
  EXPECT_EQ(why({Versions(3, 2), Versions(0, 0)}),
            "nothing was confirmed: steps came with other calls, which ended 2 of its experiments");
}

TEST(FoundChoices, HasAStoreOfItsOwnWhereTheUserNamedNone) {
  RuntimeOptions runtime;
  const auto own = FoundChoices::Watch(runtime);
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->own());
  EXPECT_FALSE(runtime.site_store.empty());
  EXPECT_EQ(own->Describe({}), "nothing was confirmed") << "no rank has written it";
  RuntimeOptions named{.site_store = "users.dcsite"};
  const auto users = FoundChoices::Watch(named);
  ASSERT_TRUE(users);
  EXPECT_FALSE(users->own());
  EXPECT_EQ(named.site_store, "users.dcsite");
}

}  // namespace
}  // namespace dynamiccl
