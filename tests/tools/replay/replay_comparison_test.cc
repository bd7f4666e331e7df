// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/decision/override_rules.h"
#include "tests/traces/any_trace.h"
#include "tools/replay/replay_report.h"

namespace dynamiccl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the plan of one communicator of two ranks: an AllReduce of 1 KiB, a group of two AllGathers, and an
// AllReduce of 1 MiB.
ReplayPlan Plan() {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 1 << 10)
      .Call(1, Collective::kAllGather, 1 << 14)
      .Call(1, Collective::kAllGather, 1 << 14)
      .Call(2, Collective::kAllReduce, 1 << 20);
  builder.section().records[3].index_in_group = 1;
  Seal(builder.section().records[3]);
  return *PlanReplay({{builder.section()}}, 0, 2, {});
}

// Runs arms with given times for the three groups. It notes the order of the runs.
struct FakeArms {
  std::map<std::string, std::vector<double>> group_us;
  std::vector<std::string>* order;
  std::string operations = OperationText(OperationHash(Plan()));

  Result<ArmRun> operator()(const ReplayArm& arm) const {
    order->push_back(arm.name);
    return ArmRun{
        .library = "fake", .operations = operations, .wall_us = 100, .group_us = group_us.at(arm.name)};
  }
};

TEST(ReplayComparison, ArmsTakeTurnsAndEachRoundBeginsElsewhere) {
  std::vector<std::string> order;
  const FakeArms run{{{"default", {10, 8, 40}}, {"ours", {10, 8, 30}}, {"best", {5, 8, 30}}}, &order};
  const auto comparison =
      CompareReplays(Plan(), {{.name = "default"}, {.name = "ours"}, {.name = "best"}}, 3, run);
  ASSERT_TRUE(comparison.has_value()) << comparison.error().message;
  EXPECT_EQ(order, (std::vector<std::string>{"default", "ours", "best", "ours", "best", "default", "best",
                                             "default", "ours"}));
  ASSERT_EQ(comparison->rows.size(), 3u);
  const Json json = ToJson(*comparison);
  EXPECT_EQ(json["schema"], 1);
  for (const Json& row : json["rows"]) {
    if (row["collective"] == "AllGather") {
      EXPECT_EQ(row["calls"], 2);
      EXPECT_DOUBLE_EQ(row["default"]["us_per_call"]["median"], 4.0) << "half of the group's time";
    }
  }
  EXPECT_THAT(FormatComparison(*comparison), HasSubstr("-25.0 %"));
  EXPECT_THAT(FormatComparison(*comparison), HasSubstr("~")) << "equal times are no difference";
}

TEST(ReplayComparison, RoundsThatEndEarlyKeepTheArmsThatRan) {
  std::vector<std::string> order;
  const FakeArms run{{{"default", {10, 8, 40}}, {"ours", {10, 8, 30}}, {"best", {5, 8, 30}}}, &order};
  const std::vector<ReplayArm> arms{{.name = "default"}, {.name = "ours"}, {.name = "best"}};
  const auto of_two = CompareReplays(Plan(), arms, 3, run, [](size_t finished) { return finished < 2; });
  ASSERT_TRUE(of_two.has_value()) << of_two.error().message;
  EXPECT_EQ(of_two->arms, (std::vector<std::string>{"default", "ours"}));
  EXPECT_EQ(of_two->rows.at(0).times.size(), 2u);
  const auto of_four = CompareReplays(Plan(), arms, 3, run, [](size_t finished) { return finished < 4; });
  ASSERT_TRUE(of_four.has_value()) << of_four.error().message;
  EXPECT_EQ(of_four->arms.size(), 3u);
  EXPECT_EQ(of_four->wall_us[1].repeats, 2) << "the second round began with this arm";
  EXPECT_EQ(of_four->wall_us[0].repeats, 1);
  EXPECT_EQ(order.size(), 6u);
}

// In the first row, ours is 10 % faster than the default, but the repeated default is 20 % slower than the
// first one.
TEST(ReplayComparison, NoDifferenceCountsThatTheDefaultHasOnceMore) {
  std::vector<std::string> order;
  const FakeArms run{
      {{"default", {10, 8, 40}}, {kDefaultAgain, {12, 8, 40}}, {"ours", {9, 8, 10}}, {"best", {5, 8, 10}}},
      &order};
  auto comparison = CompareReplays(
      Plan(), {{.name = "default"}, {.name = kDefaultAgain}, {.name = "ours"}, {.name = "best"}}, 3, run);
  ASSERT_TRUE(comparison.has_value()) << comparison.error().message;
  const std::string text = FormatComparison(*comparison);
  EXPECT_THAT(text, Not(HasSubstr("-10.0 %")));
  EXPECT_THAT(text, HasSubstr("+20.0 %")) << "the noise is shown";
  EXPECT_THAT(text, AllOf(HasSubstr("-50.0 %"), HasSubstr("-75.0 %")));
  for (ComparedRow& row : comparison->rows) row.times.back().config = "left to NCCL";
  EXPECT_THAT(FormatComparison(*comparison), Not(HasSubstr("-50.0 %"))) << "NCCL's own choice is the default";
}

TEST(ReplayComparison, AnArmThatIssuesOtherOperationsIsAnError) {
  std::vector<std::string> order;
  FakeArms run{{{"default", {1, 1, 1}}}, &order};
  run.operations = "0000000000000000";
  const auto comparison = CompareReplays(Plan(), {{.name = "default"}}, 2, run);
  ASSERT_FALSE(comparison.has_value());
  EXPECT_THAT(comparison.error().message, HasSubstr("issued operations"));
}

TEST(BestByForcing, ForcesWhatTheTracesCollectivesHave) {
  const std::vector<CollectiveConfig> configs = ConfigsToForce(Plan());
  const auto has = [&](Algorithm algorithm) {
    return std::any_of(configs.begin(), configs.end(),
                       [&](const CollectiveConfig& config) { return config.algorithm == algorithm; });
  };
  EXPECT_TRUE(has(Algorithm::kRing) && has(Algorithm::kTree) && has(Algorithm::kPat));
  EXPECT_FALSE(has(Algorithm::kCollnetDirect) || has(Algorithm::kCollnetChain));
  const CollectiveConfig one_channel{Algorithm::kRing, Protocol::kSimple, 1};
  EXPECT_EQ(std::count(configs.begin(), configs.end(), one_channel), 1) << "what an odd fabric may want";
  for (const CollectiveConfig& config : configs) {
    const auto rules = OverrideRules::Parse(RulesThatForce(config), "forced.csv");
    ASSERT_TRUE(rules.has_value()) << rules.error().message;
    EXPECT_FALSE(rules->rules().empty());
    for (const OverrideRule& rule : rules->rules()) EXPECT_EQ(rule.config, config);
  }
}

// For each size the generated rules name the config that was fastest by at least 3 %. Other sizes have no
// rule.
TEST(BestByForcing, TheFastestByMoreThanALittleIsForcedAgain) {
  const CollectiveConfig tree{Algorithm::kTree, Protocol::kLL, 0}, pat{Algorithm::kPat, Protocol::kSimple, 0};
  std::vector<std::string> order;
  const FakeArms run{{{"default", {10, 8, 40}}, {"tree", {5, 1, 39.5}}, {"pat", {1, 4, 1}}}, &order};
  const auto search =
      CompareReplays(Plan(), {{.name = "default"}, {.name = "tree"}, {.name = "pat"}}, 3, run);
  ASSERT_TRUE(search.has_value());
  const auto rules = OverrideRules::Parse(RulesOfFastest({{*search, {tree, pat}}}), "best.csv");
  ASSERT_TRUE(rules.has_value()) << rules.error().message;
  const auto rule_of = [&](Collective collective, uint64_t bytes) {
    const OverrideRule* const rule = rules->Match({.collective = collective, .bytes = bytes});
    return rule == nullptr ? kLeaveNcclAlone : rule->config;
  };
  EXPECT_EQ(rule_of(Collective::kAllReduce, 1 << 10), tree) << "AllReduce has no PAT, however fast";
  EXPECT_EQ(rule_of(Collective::kAllGather, 1 << 14), pat) << "AllGather has no Tree";
  EXPECT_EQ(rule_of(Collective::kAllReduce, 1 << 20), kLeaveNcclAlone) << "1.25 % is noise";
  EXPECT_EQ(rule_of(Collective::kAllReduce, 1 << 12), kLeaveNcclAlone)
      << "a size that the trace does not have";
}

// Only the second search tries four channels, and they beat the first search's best. Each search is compared
// with its own default, because the machine may become slower in between.
TEST(BestByForcing, TheFastestPairIsTriedWithMoreChannels) {
  const CollectiveConfig tree{Algorithm::kTree, Protocol::kLL, 0},
      ring{Algorithm::kRing, Protocol::kSimple, 0};
  std::vector<std::string> order;
  const auto compare = [&](const FakeArms& run, const std::vector<ReplayArm>& arms) {
    return *CompareReplays(Plan(), arms, 3, run);
  };
  const ForcedSearch first{
      compare({{{"default", {10, 8, 40}}, {"tree", {5, 9, 41}}, {"ring", {9, 9, 50}}}, &order},
              {{.name = "default"}, {.name = "tree"}, {.name = "ring"}}),
      {tree, ring}};
  const std::vector<CollectiveConfig> further = FurtherConfigs(first);
  const CollectiveConfig four{Algorithm::kTree, Protocol::kLL, 4};
  EXPECT_EQ(std::count(further.begin(), further.end(), four), 1);
  const ForcedSearch second{compare({{{"default", {20, 16, 80}}, {"four", {8, 16, 70}}}, &order},
                                    {{.name = "default"}, {.name = "four"}}),
                            {four}};
  const auto rules = OverrideRules::Parse(RulesOfFastest({first, second}), "best.csv");
  ASSERT_TRUE(rules.has_value()) << rules.error().message;
  const auto rule_of = [&](uint64_t bytes) {
    const OverrideRule* const rule = rules->Match({.collective = Collective::kAllReduce, .bytes = bytes});
    return rule == nullptr ? kLeaveNcclAlone : rule->config;
  };
  EXPECT_EQ(rule_of(1 << 10), four) << "0.4 of the default, where the pair alone had 0.5";
  EXPECT_EQ(rule_of(1 << 20), four) << "0.875 of the default";
}

}  // namespace
}  // namespace dynamiccl
