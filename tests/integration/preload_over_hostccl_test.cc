// SPDX-License-Identifier: Apache-2.0
// Tests the preloaded object in jobs of several processes over hostccl: what it must change, and what it must
// not.
#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "tests/integration/job_fixture.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

class PreloadOverHostccl : public JobTest {};

constexpr const char* kRules =
    "allreduce,0,100000,ring,simple,2,-1,-1\nallgather,0,1000000,ring,simple,3,-1,-1\n";

TEST_F(PreloadOverHostccl, WithoutAnySettingTheJobRunsInSilenceAsWithoutUs) {
  const JobOptions options{.n_ranks = 2, .extras = {"split", "fork", "many"}, .environment = kShowChoices};
  JobOptions alone = options;
  alone.preload = false;
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("ynami")));
  EXPECT_EQ(Choices(job), Choices(Run(alone)));
}

TEST_F(PreloadOverHostccl, ObserveRecordsAndChangesNoChoice) {
  JobOptions options{.n_ranks = 2, .rounds = "3", .environment = kShowChoices};
  options.preload = false;
  const JobResult alone = Run(options);
  options.preload = true;
  options.environment["DYNAMICCL_TRACE"] = "%d/t.%r.ctrace";
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_FALSE(Choices(alone).empty());
  EXPECT_EQ(Choices(job), Choices(alone));
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("TUNER/Plugin: Using")));
}

TEST_F(PreloadOverHostccl, TraceHoldsEveryCallWithNumbersEqualOnAllRanks) {
  const JobResult job = Run({.n_ranks = 3,
                             .rounds = "2",
                             .extras = {"peers"},
                             .environment = {{"DYNAMICCL_TRACE", "%d/t.%r.ctrace"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  std::vector<std::vector<std::tuple<uint64_t, int, uint64_t, int, int>>> calls(3);
  for (int rank = 0; rank < 3; ++rank) {
    const auto trace = ReadTrace(job.folder + "/t." + std::to_string(rank) + ".ctrace");
    ASSERT_TRUE(trace) << trace.error().message;
    ASSERT_EQ(trace->sections.size(), 1u);
    EXPECT_TRUE(trace->sections[0].closed);
    for (const TraceRecord& record : trace->sections[0].records) {
      if (record.kind != static_cast<uint16_t>(RecordKind::kCollective)) continue;
      EXPECT_EQ(record.labels & 7, static_cast<int>(Phase::kBackward));
      EXPECT_EQ(record.labelled_stage, 2);
      calls[rank].push_back(
          {record.call_number, record.collective, record.bytes, record.index_in_group, record.group_size});
    }
  }
  // Two rounds of four sizes of four calls, and a group of two. The group is one call number.
  ASSERT_EQ(calls[0].size(), 2u * (4 * 4 + 2));
  EXPECT_EQ(std::get<0>(calls[0].back()), 2u * (4 * 4 + 1) - 1);
  EXPECT_EQ(calls[0].back(), (std::tuple<uint64_t, int, uint64_t, int, int>{33, 1, 12000, 1, 2}));
  EXPECT_EQ(calls[0], calls[1]);
  EXPECT_EQ(calls[0], calls[2]);
}

TEST_F(PreloadOverHostccl, RulesAreObeyedAndAllRanksDecideTheSame) {
  const JobResult job =
      Run({.n_ranks = 3,
           .extras = {"split", "many"},
           .environment = With(kShowChoices, {{"DYNAMICCL_RULES", File("rules.csv", kRules)},
                                              {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}})});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(
      Choices(job),
      ::testing::Contains(HasSubstr("AllReduce: 4 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}")));
  EXPECT_THAT(Choices(job), ::testing::Contains(HasSubstr(
                                "AllGather: 1024 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..2}")));
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
  // The job has 20 communicators of all ranks and 20 children of all ranks. The halves of the second split
  // are not compared, because their members differ.
  const std::string first = job.Text("decisions.0");
  EXPECT_GT(LinesWith(first, " rule v1").size(), 20u);
  const std::string id = first.substr(0, 16);
  for (const char* name : {"decisions.1", "decisions.2"})
    EXPECT_EQ(LinesWith(job.Text(name), id), LinesWith(first, id));
}

TEST_F(PreloadOverHostccl, PolicyIsObeyed) {
  const std::string policy = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  const JobResult job =
      Run({.n_ranks = 2,
           .environment = With(
               kShowChoices, {{"DYNAMICCL_POLICY", policy}, {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}})});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_FALSE(LinesWith(job.Text("decisions.0"), "Ring/Simple/").empty()) << job.Text("decisions.0");
  EXPECT_FALSE(LinesWith(job.Text("decisions.0"), " policy v1").empty());
  EXPECT_EQ(job.Text("decisions.0"), job.Text("decisions.1"));
}

TEST_F(PreloadOverHostccl, RecognisedRolesAreEqualOnRanksThatRunApart) {
  ASSERT_TRUE(WritePolicyFile(folder_ + "/random", *test::MakeRandomPolicy(5)));
  const JobResult job = Run({.n_ranks = 3,
                             .rounds = "30",
                             .extras = {"peers", "split"},
                             .environment = {{"DYNAMICCL_POLICY", folder_ + "/random"},
                                             {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  const std::string first = job.Text("decisions.0");
  // Decisions on the communicator of all ranks. A random network recognises some role in most calls.
  const std::vector<std::string> world =
      LinesWith(first, first.substr(first.rfind('\n', first.size() - 2) + 1, 16));
  EXPECT_GT(world.size(), 500u);
  EXPECT_LT(LinesWith(first, " unknown ").size(), LinesWith(first, " v1").size());
  for (const char* name : {"decisions.1", "decisions.2"}) {
    EXPECT_EQ(LinesWith(job.Text(name), world[0].substr(0, 16)), world);
  }
}

// Rules by phase, stage and role must hold on all ranks at the same calls. If ranks used different configs
// for a call, its sums would be wrong, which the job checks.
TEST_F(PreloadOverHostccl, RulesByWhatIsRecognisedHoldOnAllRanksAlike) {
  ASSERT_TRUE(WritePolicyFile(folder_ + "/random", *test::MakeRandomPolicy(5)));
  std::string rules;
  for (const char* phase : {"forward", "backward", "optimizer", "other"})
    rules += fmt::format("allreduce,0,1000000,ring,simple,{},-1,-1,-1,-1,{}\n", 1 + phase[0] % 3, phase);
  rules +=
      "allgather,0,1000000,ring,simple,3,-1,-1,-1,-1,-1,1\nreducescatter,0,1000000,ring,simple,2,-1,-1,"
      "-1,-1,-1,-1,gradient_reduce\n";
  const JobResult job = Run({.n_ranks = 3,
                             .rounds = "30",
                             .extras = {"peers", "split"},
                             .environment = {{"DYNAMICCL_POLICY", folder_ + "/random"},
                                             {"DYNAMICCL_RULES", File("rules.csv", rules)},
                                             {"DYNAMICCL_METRICS", "%d/m.%r.prom"},
                                             {"DYNAMICCL_TRACE", "%d/t.%r.ctrace"},
                                             {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  const std::string first = job.Text("decisions.0");
  const std::vector<std::string> ruled = LinesWith(first, " rule v1");
  EXPECT_FALSE(ruled.empty()) << first;
  const std::regex condition(
      "AllReduce.*/(forward|backward|optimizer|other)/|AllGather.*/1 Ring|ReduceScatter.* gradient_reduce");
  for (const std::string& line : ruled) EXPECT_TRUE(std::regex_search(line, condition)) << line;
  const std::vector<std::string> world =
      LinesWith(first, first.substr(first.rfind('\n', first.size() - 2) + 1, 16));
  for (const char* name : {"decisions.1", "decisions.2"})
    EXPECT_EQ(LinesWith(job.Text(name), world[0].substr(0, 16)), world);
  EXPECT_THAT(job.Text("m.0.prom"), HasSubstr("dynamiccl_recognised_calls_total{role="));
  const auto trace = ReadTrace(job.folder + "/t.0.ctrace");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_GT(std::ranges::count_if(trace->sections[0].records,
                                  [](const TraceRecord& record) {
                                    return record.kind == static_cast<uint16_t>(RecordKind::kDecision) &&
                                           DecisionOf(record).recognised();
                                  }),
            100);
}

TEST_F(PreloadOverHostccl, RulesByPhaseWithoutAPolicyAreSaidOnceAndMatchNothing) {
  const JobResult job =
      Run({.n_ranks = 2,
           .environment = {{"DYNAMICCL_RULES",
                            File("rules.csv", "allreduce,0,1000000,ring,simple,2,-1,-1,-1,-1,backward\n")},
                           {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_TRUE(LinesWith(job.Text("decisions.0"), " rule v1").empty());
  EXPECT_THAT(job.AllOutput(),
              HasSubstr("rules name a role, phase or stage, which only a policy recognises"));
}

// The user chains to a tuner that changes NCCL's offer on one rank only. What ranks attest before the first
// call does not show this.
TEST_F(PreloadOverHostccl, OfferThatDiffersOnOneRankMeansDefaultOnAllAndIsNamed) {
  JobOptions options{.n_ranks = 3, .rounds = "8"};
  options.environment = {{"DYNAMICCL_RULES", File("r.csv", "allreduce,0,1000000000,tree,ll128,2,-1,-1\n")},
                         {"NCCL_TUNER_PLUGIN", DYNAMICCL_TEST_PRICING_TUNER},
                         {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}};
  const JobResult equal = Run(options);
  EXPECT_TRUE(equal.ok()) << equal.AllOutput();
  ExpectEqualLogs(equal, 3);
  EXPECT_GE(LinesWith(equal.Text("decisions.0"), "Tree/LL128/2 rule v1").size(), 4u * 4);
  EXPECT_THAT(equal.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));

  options.environment_of[1] = {{"TEST_PRICE_TREE_LL128", "1"}};
  const JobResult unlike = Run(options);
  EXPECT_TRUE(unlike.ok()) << unlike.AllOutput();
  ExpectEqualLogs(unlike, 3);
  EXPECT_TRUE(LinesWith(unlike.Text("decisions.0"), "rule").empty()) << unlike.Text("decisions.0");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string own = "rank " + std::to_string(rank) + " keeps NCCL's choice for AllReduce";
    const std::vector<std::string> lines = LinesWith(unlike.output[static_cast<size_t>(rank)], own);
    ASSERT_FALSE(lines.empty()) << unlike.AllOutput();
    EXPECT_THAT(lines[0], HasSubstr("configurations that NCCL offers: "));
    EXPECT_THAT(lines[0], HasSubstr("Tree:LL,Simple"));
    EXPECT_THAT(lines[0], HasSubstr("on rank 1"));
  }
}

struct Difference {
  const char* name;
  Environment of_rank_1;
  const char* line;
};

TEST_F(PreloadOverHostccl, OneRankThatDiffersPutsAllRanksOnTheDefaultAtOnce) {
  const std::string rules = File("rules.csv", kRules);
  const JobResult plain = Run({.n_ranks = 3, .preload = false, .environment = kShowChoices});
  const Difference differences[] = {
      {"rules", {{"DYNAMICCL_RULES", File("other.csv", "# none\n")}}, "override rules: "},
      {"damaged rules", {{"DYNAMICCL_RULES", File("bad.csv", "allreduce,0,1\n")}}, "bad.csv:1: column 3"},
      {"observe", {{"DYNAMICCL_MODE", "observe"}}, "rank 1 takes no part: it runs in mode observe"},
      {"off", {{"DYNAMICCL_MODE", "off"}}, "rank 1 takes no part: it runs in mode off"},
      {"policy", {{"DYNAMICCL_POLICY", PolicyFile("a", Algorithm::kTree, Protocol::kLL)}}, "policy: "},
      {"damaged policy", {{"DYNAMICCL_POLICY", File("b", "not a policy")}}, "rank 1 takes no part: "},
      {"pins", {{"NCCL_NTHREADS", "64"}}, "NCCL settings: "},
      {"no tuner", {{"NCCL_TUNER_PLUGIN", "none"}}, "rank 1 takes no part: NCCL_TUNER_PLUGIN=none"},
  };
  for (const Difference& difference : differences) {
    const JobResult job =
        Run({.n_ranks = 3,
             .environment =
                 With(kShowChoices, {{"DYNAMICCL_RULES", rules}, {"DYNAMICCL_ATTEST_TIMEOUT_MS", "20000"}}),
             .environment_of = {{1, difference.of_rank_1}}});
    EXPECT_TRUE(job.ok()) << difference.name << job.AllOutput();
    EXPECT_EQ(Choices(job), Choices(plain)) << difference.name;
    EXPECT_THAT(job.output[0], HasSubstr(difference.line)) << difference.name;
    EXPECT_THAT(job.output[0], HasSubstr("rank 1")) << difference.name;
    EXPECT_THAT(job.output[2], HasSubstr("rank 2 keeps NCCL's choice")) << difference.name;
    // This is far below the time-out, so no rank waited for it.
    EXPECT_LT(job.seconds, 15) << difference.name;
  }
}

TEST_F(PreloadOverHostccl, RankWithoutTheObjectMeansDefaultAfterTheTimeoutAndNoSecondWait) {
  const JobResult plain =
      Run({.n_ranks = 3, .extras = {"many"}, .preload = false, .environment = kShowChoices});
  for (const int rank : {1, 2}) {
    const JobResult job =
        Run({.n_ranks = 3,
             .extras = {"many"},
             .environment = With(kShowChoices, {{"DYNAMICCL_RULES", File("rules.csv", kRules)},
                                                {"DYNAMICCL_ATTEST_TIMEOUT_MS", "1000"}}),
             .without_preload = {rank}});
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_EQ(Choices(job), Choices(plain));
    EXPECT_THAT(job.output[0], HasSubstr("2 of 3 ranks pledged in time; missing " + std::to_string(rank)));
    // The ranks wait one second once, not for each of the twenty communicators.
    EXPECT_LT(job.seconds, 12);
  }
}

TEST_F(PreloadOverHostccl, RankZeroWithoutTheObjectMeansDefault) {
  const JobResult plain = Run({.n_ranks = 2, .preload = false, .environment = kShowChoices});
  const JobResult job =
      Run({.n_ranks = 2,
           .environment = With(kShowChoices, {{"DYNAMICCL_RULES", File("rules.csv", kRules)}}),
           .without_preload = {0}});
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(Choices(job), Choices(plain));
  EXPECT_THAT(job.output[1], HasSubstr("rank 1 keeps NCCL's choice: the unique id carries no address"));
}

TEST_F(PreloadOverHostccl, RanksAsThreadsOfOneProcessAgree) {
  JobOptions options{.n_ranks = 1, .extras = {"threads", "split"}};
  options.environment = With(kShowChoices, {{"DYNAMICCL_RULES", File("rules.csv", kRules)},
                                            {"DYNAMICCL_DECISION_LOG", "%d/decisions"}});
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
  EXPECT_FALSE(LinesWith(job.Text("decisions"), "Ring/Simple/3 rule").empty());
}

TEST_F(PreloadOverHostccl, OneThreadThatDrivesAllRanksOfTheJob) {
  JobOptions options{.n_ranks = 1, .extras = {"all"}};
  options.environment = With(kShowChoices, {{"DYNAMICCL_RULES", File("rules.csv", kRules)},
                                            {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}});
  options.environment["RANK"] = "";
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
  EXPECT_EQ(LinesWith(job.Text("decisions.0"), "AllReduce 1200 unknown Ring/Simple/2 rule v1").size(), 3u);
  EXPECT_EQ(job.Text("decisions.0"), job.Text("decisions.1"));
  EXPECT_EQ(job.Text("decisions.0"), job.Text("decisions.2"));
}

TEST_F(PreloadOverHostccl, WhatTheUserPinnedWins) {
  const Environment pins{{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "LL"}};
  const JobResult plain = Run({.n_ranks = 2, .preload = false, .environment = With(kShowChoices, pins)});
  const JobResult job =
      Run({.n_ranks = 2,
           .environment = With(With(kShowChoices, pins), {{"DYNAMICCL_RULES", File("r", kRules)}})});
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(Choices(job), Choices(plain));
  EXPECT_EQ(
      LinesWith(job.output[1], "what you pinned stays as you set it: NCCL_ALGO=Ring NCCL_PROTO=LL").size(),
      1u);
}

// Numbers of decisions by a rule for Ring/Simple/1: those with the rule's channels and those with NCCL's.
struct RuledChannels {
  size_t by_rule = 0;
  size_t by_nccl = 0;
};
RuledChannels ChannelsIn(const std::string& log) {
  return {LinesWith(log, " Ring/Simple/1 rule v1").size(), LinesWith(log, " Ring/Simple/0 rule v1").size()};
}

class CommunicatorsWithCtas : public PreloadOverHostccl {
 protected:
  JobResult RunWith(const std::vector<std::string>& extras) {
    const std::string rule = "allreduce,0,10000000,ring,simple,1,-1,-1\n";
    JobOptions options{.n_ranks = 2, .extras = extras};
    options.environment = With(kShowChoices, {{"DYNAMICCL_RULES", File("rules.csv", rule)},
                                              {"JOB_MIN_CTAS", "2"},
                                              {"JOB_MAX_CTAS", "4"},
                                              {"JOB_NVLS_CTAS", "3"},
                                              {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}});
    JobResult job = Run(options);
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    ExpectEqualLogs(job, 2);
    EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
    return job;
  }
};

TEST_F(CommunicatorsWithCtas, KeepNcclsChannelsAndTakeTheRest) {
  const JobResult job = RunWith({"ctas"});
  const RuledChannels ruled = ChannelsIn(job.Text("decisions.0"));
  EXPECT_EQ(ruled.by_rule, 0u) << job.Text("decisions.0");
  EXPECT_GT(ruled.by_nccl, 6u) << job.Text("decisions.0");
  // Without emulated links hostccl itself uses one channel. The program's minCTAs raises this to two.
  EXPECT_THAT(Choices(job), ::testing::Contains(HasSubstr(
                                "AllReduce: 280000 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}")));
  for (const std::string& said : job.output)
    EXPECT_EQ(
        LinesWith(said, "what the program pinned stays as it set it: minCTAs=2 maxCTAs=4 nvlsCTAs=3").size(),
        1u);
}

// As in NCCL, a child without a configuration inherits its parent's. A child with a configuration inherits
// nothing.
TEST_F(CommunicatorsWithCtas, HandThemToChildrenWithoutAConfiguration) {
  const JobResult inherited = RunWith({"ctas", "split"});
  const RuledChannels all = ChannelsIn(inherited.Text("decisions.0"));
  EXPECT_EQ(all.by_rule, 0u);
  EXPECT_GT(all.by_nccl, 6u);
  EXPECT_EQ(LinesWith(inherited.output[0], "the program pinned").size(), 1u);
  const RuledChannels own = ChannelsIn(RunWith({"ctas", "splitdefault"}).Text("decisions.0"));
  EXPECT_GT(own.by_rule, 0u);
  EXPECT_EQ(own.by_nccl, ChannelsIn(RunWith({"ctas"}).Text("decisions.0")).by_nccl);
}

// The object must not read the bytes after the end of a shorter configuration.
TEST_F(CommunicatorsWithCtas, AreThoseWhoseConfigurationIsLongEnough) {
  const JobResult job = RunWith({"oldctas"});
  const RuledChannels ruled = ChannelsIn(job.Text("decisions.0"));
  EXPECT_GT(ruled.by_rule, 6u) << job.Text("decisions.0");
  EXPECT_EQ(ruled.by_nccl, 0u);
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("the program pinned")));
}

TEST_F(PreloadOverHostccl, UnknownSettingIsSaidOnceWithTheNearestName) {
  const JobResult job = Run({.n_ranks = 2, .environment = {{"DYNAMICCL_RULE", "x"}}});
  EXPECT_TRUE(job.ok());
  EXPECT_EQ(LinesWith(job.output[0], "DYNAMICCL_RULE is not a setting; did you mean DYNAMICCL_RULES?").size(),
            1u);
}

TEST_F(PreloadOverHostccl, ForkedChildWritesNothingIntoTheTrace) {
  const JobResult job = Run({.n_ranks = 2,
                             .extras = {"fork"},
                             .environment = {{"DYNAMICCL_TRACE", "%d/t.%r.ctrace"},
                                             {"DYNAMICCL_RULES", File("rules.csv", kRules)}}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(job.AllOutput(), "");
  EXPECT_TRUE(ReadTrace(job.folder + "/t.0.ctrace"));
}

TEST_F(PreloadOverHostccl, TunerOfTheUserIsTheDefaultBehindOurs) {
  const Environment basic{{"NCCL_TUNER_PLUGIN", DYNAMICCL_TEST_BASIC_TUNER}};
  const JobResult alone = Run({.n_ranks = 2, .preload = false, .environment = With(kShowChoices, basic)});
  const Environment none = With(basic, {{"DYNAMICCL_RULES", File("none.csv", "# nothing\n")},
                                        {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}});
  const JobResult chained = Run({.n_ranks = 2, .environment = With(kShowChoices, none)});
  EXPECT_TRUE(chained.ok()) << chained.AllOutput();
  EXPECT_EQ(Choices(chained), Choices(alone));
  EXPECT_FALSE(LinesWith(chained.Text("decisions.0"), "- chained v1").empty());
  const Environment ours = With(basic, {{"DYNAMICCL_RULES", File("rules.csv", kRules)}});
  const JobResult ruled = Run({.n_ranks = 2, .environment = With(kShowChoices, ours)});
  EXPECT_THAT(
      Choices(ruled),
      ::testing::Contains(HasSubstr("AllReduce: 4 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}")));
}

// NCCL would find a tuner by its default name, inside the network plugin, or in a file. DynamICCL must chain
// to each.
TEST_F(PreloadOverHostccl, TunerIsChainedToWhereverNcclWouldHaveFoundIt) {
  std::filesystem::create_symlink(DYNAMICCL_TEST_BASIC_TUNER, folder_ + "/libnccl-tuner.so");
  const Environment ways[] = {
      {{"LD_LIBRARY_PATH", folder_}},
      {{"NCCL_NET_PLUGIN", std::string("none-such,") + DYNAMICCL_TEST_BASIC_TUNER}},
      {{"NCCL_CONF_FILE", File("nccl.conf", "# comment\nNCCL_TUNER_PLUGIN=" +
                                                std::string(DYNAMICCL_TEST_BASIC_TUNER) + "\n")}}};
  for (const Environment& way : ways) {
    SCOPED_TRACE(way.begin()->first);
    const Environment rules{
        {"DYNAMICCL_RULES", File("r.csv", "allreduce,1000000000,1000000001,ring,ll,1,-1,-1\n")},
        {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}};
    const JobResult job = Run({.n_ranks = 2, .environment = With(With(kShowChoices, way), rules)});
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_FALSE(LinesWith(job.Text("decisions.0"), "- chained v1").empty()) << job.AllOutput();
    EXPECT_THAT(Choices(job), Each(HasSubstr("Algo RING proto SIMPLE")));
  }
}

TEST_F(PreloadOverHostccl, TheObjectUnderNcclsDefaultNameIsNotChainedToItself) {
  std::filesystem::create_symlink(DYNAMICCL_TEST_PRELOAD, folder_ + "/libnccl-tuner.so");
  const JobResult job = Run({.n_ranks = 2,
                             .environment = {{"LD_LIBRARY_PATH", folder_},
                                             {"DYNAMICCL_RULES", File("rules.csv", kRules)},
                                             {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}}});
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_TRUE(LinesWith(job.Text("decisions.0"), "chained").empty());
  EXPECT_FALSE(LinesWith(job.Text("decisions.0"), " rule v1").empty());
}

TEST_F(PreloadOverHostccl, AsPluginAloneItNeedsTheUsersWordForThePolicy) {
  const std::string policy = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  JobOptions options{.n_ranks = 2, .preload = false};
  options.environment = With(kShowChoices, {{"NCCL_TUNER_PLUGIN", DYNAMICCL_TEST_PRELOAD},
                                            {"DYNAMICCL_POLICY", policy},
                                            {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}});
  const JobResult without = Run(options);
  EXPECT_TRUE(without.ok()) << without.AllOutput();
  EXPECT_THAT(without.output[0], HasSubstr("preload libdynamiccl.so"));
  options.environment["DYNAMICCL_POLICY_SHA256"] = ToHex(ReadPolicyFile(policy).value()->sha256);
  const JobResult vouched = Run(options);
  EXPECT_TRUE(vouched.ok()) << vouched.AllOutput();
  EXPECT_THAT(vouched.output[0], Not(HasSubstr("keeps NCCL's choice")));
  EXPECT_FALSE(LinesWith(vouched.Text("decisions.0"), " policy v1").empty());
}

}  // namespace
}  // namespace dynamiccl::testing
