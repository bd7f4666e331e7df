// SPDX-License-Identifier: Apache-2.0
// Tests the search on jobs with made-up step times, and the list of candidates with which it begins.
#include "tools/tune/tune_search.h"
#include "tools/tune/config_turns.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "tests/support/test_seed.h"
#include "tools/tune/channel_bounds.h"

namespace dynamiccl {
namespace {

CandidateList ListOfConfigs(const std::vector<std::string>& configs) {
  CandidateList list;
  for (const std::string& config : configs) list.configs.push_back({.config = config});
  return list;
}

TEST(ConfigTurns, AsManyConfigsAsTheTurnsTellApart) {
  CandidateList list = ListOfConfigs({"ring/simple/1", "tree/simple", "ring/ll", "tree/ll"});
  CutToTurns(35, list);
  EXPECT_EQ(list.configs.size(), 4u);
  CutToTurns(34, list);
  EXPECT_EQ(SettingsInTurn(list),
            (std::vector<std::string>{"default", "ring/simple/1", "tree/simple", "ring/ll"}));
  EXPECT_EQ(list.left_out.size(), 1u);
  CutToTurns(13, list);
  EXPECT_TRUE(list.configs.empty());
}

TEST(ConfigTurns, ThoseThatAreSurelyFasterStayAndThoseThatMayBeFasterAreOpen) {
  TurnComparison comparison;
  comparison.settings = {{"default", 9, 10, {}, 1, {1, 1}},
                         {"ring/ll", 9, 9.5, {}, 0.95, {0.88, 1.02}},
                         {"tree/simple", 9, 9, {}, 0.9, {0.88, 0.93}},
                         {"ring/simple/1", 9, 8, {}, 0.8, {0.78, 0.82}},
                         {"tree/ll", 9, 9.2, {}, 0.92, {0.9, 0.95}},
                         {"ring/ll128", 9, 7.9, {}, 0.79, {0.7, 1.1}},
                         {"pat/simple", 9, 7.5, {}, 0.75, {0.7, 1.2}}};
  const TurnVerdicts verdicts = JudgeConfigs(comparison);
  EXPECT_EQ(verdicts.faster, (std::vector<std::string>{"ring/simple/1", "tree/simple"}));
  EXPECT_EQ(verdicts.open, (std::vector<std::string>{"pat/simple", "ring/ll128"}));
  CandidateList list = ListOfConfigs({"tree/simple", "ring/ll", "ring/simple/1", "tree/ll"});
  KeepConfigs(verdicts.faster, list);
  EXPECT_EQ(SettingsInTurn(list), (std::vector<std::string>{"default", "tree/simple", "ring/simple/1"}));
}

// Measured on a slow rail: eight rounds with one disturbed turn did not prove the fastest config.
TEST(ConfigTurns, AConfigWhoseIntervalIsStillWideIsOpenAndASmallGainIsNot) {
  TurnComparison comparison;
  comparison.settings = {{"default", 8, 15.1, {}, 1, {1, 1}},
                         {"ring/simple/1", 8, 14.73, {}, 0.797, {0.77, 1.11}},
                         {"ring/simple", 8, 14.53, {}, 0.99, {0.958, 1.041}},
                         {"ring/ll", 8, 18.62, {}, 1.253, {1.015, 1.646}}};
  const TurnVerdicts verdicts = JudgeConfigs(comparison);
  EXPECT_TRUE(verdicts.faster.empty());
  EXPECT_EQ(verdicts.open, (std::vector<std::string>{"ring/simple/1"}));
}

TEST(ConfigTurns, VerdictsAreReadBackFromTheirWords) {
  const TurnVerdicts verdicts{{"tree/simple", "ring/ll"}, {"ring/simple/1"}};
  EXPECT_EQ(TextOf(verdicts), "tree/simple ring/ll ring/simple/1?");
  EXPECT_EQ(VerdictsIn(TextOf(verdicts)).faster, verdicts.faster);
  EXPECT_EQ(VerdictsIn(TextOf(verdicts)).open, verdicts.open);
  EXPECT_EQ(TextOf({}), "");
  EXPECT_TRUE(VerdictsIn("").faster.empty());
}

using ::testing::Contains;
using ::testing::HasSubstr;

using StepTime = std::function<double(const Candidate&)>;

CandidateList DdpList() {
  WatchedRun base{.reports = {{.rank = 0, .ddp = DdpReport{.constructed = 1, .bucket_cap_mb = 25}}},
                  .step = RecordedStep{.ranks = 2},
                  .on_host = true};
  base.step->operations.push_back({.collective = Collective::kAllReduce, .elements = 1000});
  return CandidatesFor(base);
}

// Runs the search to its end. Times have 1 % noise, and the machine gets slower by 1 % per turn.
TuneSearch Search(const StepTime& step_time, uint64_t seed, int level_rounds = 2) {
  TuneSearch search(DdpList(), level_rounds);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(1, 0.01);
  for (auto turn = search.NextTurn(); !turn.empty(); turn = search.NextTurn())
    for (const size_t candidate : turn)
      search.Record(candidate, step_time(search.tried()[candidate].candidate) * noise(random) *
                                   (1 + 0.01 * search.turn()));
  return search;
}

// One bucket saves 10 % and one channel saves 25 %. Both savings multiply.
double Additive(const Candidate& candidate) {
  const auto cap = candidate.values.find("ddp.bucket_cap_mb");
  return 20 * (cap != candidate.values.end() && cap->second == 1000 ? 0.9 : 1.0) *
         (candidate.config == "ring/simple/1" ? 0.75 : 1.0);
}

TEST(TuneSearch, FindsTheBestOfBothTogether) {
  const TuneSearch search = Search(Additive, test::TestSeed(1));
  ASSERT_NE(search.Best(), 0u);
  EXPECT_EQ(search.tried()[search.Best()].candidate.Name(), "bucket_cap_mb=1000, ring/simple/1");
  EXPECT_NEAR(search.RatioOf(search.Best()).ratio, 0.675, 0.02);
  EXPECT_LE(search.turn(), 30);
}

TEST(TuneSearch, FindsNothingWhereNothingIsToBeWon) {
  int found = 0;
  for (uint64_t seed = 0; seed < 200; ++seed)
    found += Search([](const Candidate&) { return 20.0; }, test::TestSeed(1) + seed).Best() != 0 ? 1 : 0;
  RecordProperty("found", found);
  // Each of two finalists seems faster in one of forty cases at each of two looks. That gives 20 of 200, plus
  // noise.
  EXPECT_LE(found, 30);
}

TEST(TuneSearch, ASingleWinsWhereTheOtherOnlyCosts) {
  const TuneSearch search = Search(
      [](const Candidate& one) {
        return 20 * (one.values.empty() ? 1 : 1.2) * (one.config == "tree/ll" ? 0.9 : 1);
      },
      test::TestSeed(1), 1);
  EXPECT_EQ(search.tried()[search.Best()].candidate.Name(), "tree/ll");
}

TEST(TuneSearch, RunsTheJobItselfInEveryTurnAndTurnsTheOrder) {
  TuneSearch search(DdpList(), 2);
  const auto first = search.NextTurn();
  for (const size_t candidate : first) search.Record(candidate, 10);
  const auto second = search.NextTurn();
  EXPECT_EQ(first.front(), 0u);
  EXPECT_EQ(second.back(), 0u);
  EXPECT_EQ(first.size(), 5u);
  const CandidateList list = DdpList();
  EXPECT_EQ(search.tried().size(), 1 + list.framework.size() + list.configs.size());
}

TEST(TuneSearch, GivesUpWhatFailsAndEndsWhereAllFails) {
  TuneSearch search(DdpList(), 1);
  for (auto turn = search.NextTurn(); !turn.empty(); turn = search.NextTurn()) {
    for (const size_t candidate : turn) {
      if (candidate == 0)
        search.Record(candidate, 10);
      else
        search.GiveUp(candidate, "the job failed");
    }
  }
  // Fifteen candidates, four in each turn.
  EXPECT_EQ(search.turn(), 4);
  EXPECT_EQ(search.Best(), 0u);
  EXPECT_EQ(search.tried()[1].given_up, "the job failed");
}

// A user may name settings with configs of their own. Two configs for one call are no valid setting.
TEST(TuneSearch, CombinesNoTwoConfigs) {
  CandidateList list;
  list.framework = {CandidateNamed("bucket_cap_mb=100,ring/ll").value(),
                    CandidateNamed("bucket_cap_mb=5").value()};
  list.configs = {CandidateNamed("ring/simple/1").value()};
  TuneSearch search(list, 1);
  for (auto turn = search.NextTurn(); !turn.empty(); turn = search.NextTurn())
    for (const size_t candidate : turn) search.Record(candidate, candidate == 0 ? 10 : 9);
  std::vector<std::string> names;
  for (const TriedCandidate& tried : search.tried()) names.push_back(tried.candidate.Name());
  EXPECT_THAT(names, Contains("bucket_cap_mb=5, ring/simple/1"));
  EXPECT_THAT(names, ::testing::Not(Contains(HasSubstr("bucket_cap_mb=100, ring/simple/1"))));
}

// The second config varies so much that the final continues after six turns. Then the first config fails.
TEST(TuneSearch, WhatFailedIsNotTheBestHoweverFastItWas) {
  TuneSearch search(ListOfConfigs({"ring/simple/1", "tree/simple"}), 1);
  for (auto turn = search.NextTurn(); !turn.empty(); turn = search.NextTurn()) {
    for (const size_t candidate : turn) {
      const double times[] = {10, 8, search.turn() % 2 == 0 ? 7.3 : 8.9};
      if (candidate == 1 && search.turn() == 9)
        search.Fail(candidate, "the job failed");
      else
        search.Record(candidate, times[candidate]);
    }
  }
  EXPECT_EQ(search.tried()[1].given_up, "the job failed");
  EXPECT_GE(search.RatioOf(1).turns, 6u);
  EXPECT_LT(search.RatioOf(1).interval.high, 1);
  EXPECT_NE(search.Best(), 1u);
}

// The third candidate is 10 % faster in each of eight turns. The two finalists were faster at first but win
// nothing in the final. The turns that chose the finalists must not prove the third one.
TEST(TuneSearch, WhatWasGivenUpBeforeTheFinalIsNotTheBest) {
  TuneSearch search(DdpList(), 2);
  std::map<size_t, int> runs;
  for (auto turn = search.NextTurn(); !turn.empty(); turn = search.NextTurn()) {
    for (const size_t candidate : turn) {
      const bool lucky = candidate == 1 || candidate == 2;
      const double fast = lucky && ++runs[candidate] <= 8 ? 8 : 10;
      search.Record(candidate, candidate == 3 ? 9 : fast);
    }
  }
  EXPECT_GE(search.RatioOf(3).turns, 6u);
  EXPECT_LT(search.RatioOf(3).interval.high, 1);
  EXPECT_FALSE(search.tried()[3].in);
  EXPECT_EQ(search.Best(), 0u);
}

RecordedStep Unmarked(int64_t elements) {
  RecordedStep step{.ranks = 2};
  step.operations.push_back({.collective = Collective::kAllReduce, .elements = elements});
  return step;
}

TEST(TuneCandidates, AStepWithHalfOfTheGradientsIsNoStep) {
  const Candidate bucket{.values = {{"ddp.bucket_cap_mb", 1}}};
  EXPECT_THAT(WhyNotComparable(bucket, Unmarked(500), Unmarked(1000)), HasSubstr("its step is not known"));
  EXPECT_THAT(WhyNotComparable(bucket, Unmarked(1000), Unmarked(500)), HasSubstr("its step is not known"));
  EXPECT_EQ(WhyNotComparable(bucket, Unmarked(1010), Unmarked(1000)), "");
  RecordedStep marked = Unmarked(1000), half = Unmarked(500);
  marked.marked = half.marked = true;
  EXPECT_EQ(WhyNotComparable(bucket, half, marked), "");
}

TEST(TuneCandidates, AreFewerWhereTimeIsShort) {
  CandidateList list = DdpList();
  KeepLikeliest(5, list);
  EXPECT_EQ(list.framework.size() + list.configs.size(), 5u);
  EXPECT_EQ(list.configs.front().config, "ring/simple/1");
  EXPECT_THAT(list.left_out, Contains(HasSubstr("for lack of time")));
}

WatchedRun ShardedRun(uint64_t free_bytes) {
  WatchedRun base{
      .reports = {{.fsdp2 = Fsdp2Report{.wrapped = 2, .parameter_bytes = 1 << 20, .free_bytes = free_bytes}}},
      .step = RecordedStep{.ranks = 2},
      .on_host = true};
  for (const auto collective : {Collective::kAllGather, Collective::kAllGather, Collective::kReduceScatter})
    base.step->operations.push_back({.collective = collective, .elements = 1000});
  return base;
}

TEST(TuneCandidates, KeepParametersOnlyWhereTheMemoryAllowsIt) {
  const CandidateList roomy = CandidatesFor(ShardedRun(1 << 30));
  EXPECT_EQ(roomy.framework.front().Name(), "reshard_after_forward=false");
  EXPECT_THAT(roomy.framework.front().remark, HasSubstr("holds 1M"));
  const CandidateList tight = CandidatesFor(ShardedRun(1 << 20));
  EXPECT_EQ(tight.framework.front().Name(), "forward_prefetch=1");
  EXPECT_THAT(tight.left_out.front(), HasSubstr("1M are free"));
}

std::vector<std::string> NamesOf(const CandidateList& list) {
  std::vector<std::string> names;
  for (const Candidate& one : list.framework) names.push_back(one.Name());
  return names;
}

TEST(TuneCandidates, OfDdpAreTheArgumentsThatTheScriptDoesNotHave) {
  WatchedRun base{.reports = {{.ddp = DdpReport{.constructed = 1,
                                                .bucket_cap_mb = 1,
                                                .takes_first_bucket = true,
                                                .gradient_as_bucket_view = true,
                                                .static_graph = false}}},
                  .step = RecordedStep{.ranks = 2},
                  .on_host = true};
  base.step->operations.push_back({.collective = Collective::kAllReduce, .elements = 1000});
  EXPECT_EQ(NamesOf(CandidatesFor(base)),
            (std::vector<std::string>{"bucket_cap_mb=1000", "bucket_cap_mb=100", "bucket_cap_mb=5",
                                      "first_bucket_mb=0.25", "static_graph=true"}));
}

TEST(TuneCandidates, OfFsdp2AreUnitsAndGroupsOfRanksThatTheJobAllows) {
  WatchedRun base = ShardedRun(1 << 30);
  Fsdp2Report& report = *base.reports.front().fsdp2;
  report.takes_lists = report.one_mesh = true;
  report.longest_row = 6;
  base.step->ranks = 8;
  base.step->ranks_per_node = 2;
  const CandidateList list = CandidatesFor(base);
  const std::vector<std::string> names = NamesOf(list);
  EXPECT_THAT(names, Contains("modules_per_unit=2"));
  EXPECT_THAT(names, ::testing::Not(Contains("modules_per_unit=4")));
  EXPECT_THAT(names, Contains("shard_ranks=2"));
  EXPECT_THAT(names, Contains("shard_ranks=4"));
  // 1 MiB of parameters has 4 MiB of states. Each rank holds half of them instead of an eighth.
  EXPECT_THAT(list.framework[names.size() - 2].remark, HasSubstr("1.5M more"));
  base.step->ranks_per_node = 1;
  base.step->ranks = 2;
  report.takes_lists = false;
  EXPECT_EQ(NamesOf(CandidatesFor(base)).size(), 4u);
  // The search does not try prefetch depths that the script itself sets.
  report.forward_prefetch = 1;
  report.backward_prefetch = 2;
  EXPECT_EQ(NamesOf(CandidatesFor(base)),
            (std::vector<std::string>{"reshard_after_forward=false", "forward_prefetch=2"}));
}

TEST(TuneCandidates, OnAGpuMoreChannelsAreTried) {
  WatchedRun base;
  base.step = RecordedStep{};
  const auto bounds = [&] {
    const auto list = CandidatesFor(base).framework;
    return std::ranges::count(list, "min_ctas=32", &Candidate::config);
  };
  EXPECT_EQ(bounds(), 1);
  base.on_host = true;
  EXPECT_EQ(bounds(), 0);
  const Candidate both = Combined({.config = "min_ctas=32", .remark = "costs"}, {.config = "ring/simple/1"});
  EXPECT_EQ(both.config, "ring/simple/1,min_ctas=32");
  EXPECT_EQ(both.remark, "costs");
}

TEST(ChannelBounds, AreProvedByTheJobsOutput) {
  const std::string as_asked = "dynamiccl: rank 0 initialises a communicator as the program asks: no rules\n";
  const std::string bounded = "dynamiccl: rank 1 initialises a communicator with minCTAs=32, as rules say\n";
  EXPECT_EQ(WhyBoundsStay(bounded + as_asked), "");
  EXPECT_EQ(WhyBoundsStay(as_asked + "step 1\n"), "no rules");
  EXPECT_THAT(WhyBoundsStay("step 1\n"), HasSubstr("no line of the job"));
}

TEST(TuneCandidates, AreNamedOnTheCommandLine) {
  const auto both = CandidateNamed("bucket_cap_mb=100,ring/simple/1");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->Name(), "bucket_cap_mb=100, ring/simple/1");
  const auto bound = CandidateNamed("min_ctas=32,bucket_cap_mb=100,ring/simple");
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->Name(), "bucket_cap_mb=100, min_ctas=32,ring/simple");
  EXPECT_FALSE(CandidateNamed("ring/simple,tree/ll"));
  EXPECT_FALSE(CandidateNamed("min_ctas=100"));
  EXPECT_FALSE(CandidateNamed("ring/nothing"));
  EXPECT_FALSE(CandidateNamed(""));
}

}  // namespace
}  // namespace dynamiccl
