// SPDX-License-Identifier: Apache-2.0
// Tests every version of the plugin interfaces in jobs over hostccl. All ranks must decide the same,
// whichever version a release of NCCL finds.
#include <fmt/format.h>

#include <regex>

#include "src/base/sha256.h"
#include "tests/integration/job_fixture.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

// Rules that every version can apply. They use only what version 2 has on every machine.
constexpr const char* kRules =
    "allreduce,0,2000,tree,simple,2,-1,-1\n"
    "allreduce,2001,100000000,ring,ll,3,-1,-1\n"
    "allgather,0,1000000,ring,simple,3,-1,-1\n"
    "reducescatter,0,1000000,ring,ll,-1,-1,-1\n"
    "broadcast,0,1000000,ring,simple,1,-1,-1\n"
    "reduce,0,1000000,ring,ll,4,-1,-1\n";

std::string Plugin(const std::string& kind, int version) {
  return std::string(DYNAMICCL_TEST_PLUGIN_FOLDER) + "/" + kind + "_v" + std::to_string(version) +
         "/libnccl-" + kind + "-dynamiccl.so";
}

// Removes the communicators' names, which differ from job to job.
std::vector<std::string> WithoutCommunicator(const std::string& log) {
  std::vector<std::string> lines = LinesWith(log, " ");
  for (std::string& line : lines) line.erase(0, line.find(' '));
  return lines;
}

class TunerDoors : public JobTest {
 protected:
  JobOptions Options(int version, const std::string& release) {
    JobOptions options{.n_ranks = 3, .rounds = "4"};
    options.environment = With(kShowChoices, {{"DYNAMICCL_RULES", File("rules.csv", kRules)},
                                              {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"},
                                              {"HOSTCCL_EMULATE", release},
                                              {"NCCL_TUNER_PLUGIN", Plugin("tuner", version)},
                                              {"TEST_DYNAMICCL", DYNAMICCL_TEST_PRELOAD}});
    return options;
  }
};

TEST_F(TunerDoors, AllVersionsDecideTheSameInBothFamiliesOfReleases) {
  std::vector<std::string> newest;
  for (const char* release : {"2.30", "2.32"}) {
    for (const int version : {7, 6, 5, 4, 3, 2}) {
      SCOPED_TRACE(release + (" version " + std::to_string(version)));
      const JobResult job = Run(Options(version, release));
      EXPECT_TRUE(job.ok()) << job.AllOutput();
      EXPECT_THAT(job.output[0], HasSubstr("Using DynamICCL (v" + std::to_string(version) + ")"));
      EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
      ExpectEqualLogs(job, 3);
      const std::vector<std::string> decisions = WithoutCommunicator(job.Text("decisions.0"));
      if (newest.empty()) newest = decisions;
      EXPECT_EQ(decisions, newest);
    }
  }
  // Four rounds of sixteen calls and a group of two. NCCL decides the first call of each situation.
  EXPECT_EQ(newest.size(), 4u * 18);
  size_t ruled = 0;
  for (const std::string& line : newest) ruled += line.ends_with(" rule v1") ? 1 : 0;
  EXPECT_GT(ruled, 40u);
}

TEST_F(TunerDoors, PolicyIsUsedThroughTheVersionsThatTellNoConstants) {
  for (const int version : {2, 3, 4}) {
    JobOptions options = Options(version, "2.30");
    options.environment.erase("DYNAMICCL_RULES");
    options.environment["DYNAMICCL_POLICY"] = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
    const JobResult job = Run(options);
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    ExpectEqualLogs(job, 3);
    EXPECT_FALSE(LinesWith(job.Text("decisions.0"), " policy v1").empty())
        << version << job.Text("decisions.0");
  }
}

// In NCCL 2.21, a tuner's choice overrides what the user pinned.
TEST_F(TunerDoors, Version2NamesNothingWhereTheUserPinnedPairs) {
  JobOptions options = Options(2, "2.30");
  options.environment["NCCL_PROTO"] = "LL";
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(job.Text("decisions.0"), "");
  EXPECT_THAT(Choices(job), Each(HasSubstr(" proto LL ")));
}

// Returns the decisions by communicator. The first 16 letters of a line name the communicator.
std::map<std::string, std::vector<std::string>> ByCommunicator(const std::string& log) {
  std::map<std::string, std::vector<std::string>> decisions;
  for (const std::string& line : LinesWith(log, " "))
    decisions[line.substr(0, 16)].push_back(line.substr(16));
  return decisions;
}

// Before version 5, NCCL does not tell the tuner which communicator it initialises, and it initialises on its
// own threads.
class SeveralOfOneSizeInAGroup : public TunerDoors {
 protected:
  JobOptions Options(int version) {
    JobOptions options = TunerDoors::Options(version, "2.30");
    options.extras = {"several"};
    // In each situation, ranks wait for a late rank for a twentieth of this time.
    options.environment["DYNAMICCL_ATTEST_TIMEOUT_MS"] = "20000";
    return options;
  }
};

TEST_F(SeveralOfOneSizeInAGroup, AttestAtTheirFirstCalls) {
  for (const int version : {2, 3, 4, 5}) {
    SCOPED_TRACE(version);
    const JobResult job = Run(Options(version));
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    ExpectEqualLogs(job, 3);
    EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
    const auto decisions = ByCommunicator(job.Text("decisions.0"));
    EXPECT_EQ(decisions.size(), 3u);
    for (const auto& [communicator, lines] : decisions) {
      const auto ruled = std::count_if(lines.begin(), lines.end(),
                                       [](const std::string& line) { return line.ends_with(" rule v1"); });
      // A job with one communicator has as many: four rounds of 18 calls. NCCL decides the first call of each
      // situation.
      EXPECT_GT(ruled, 40) << communicator;
    }
  }
}

TEST_F(SeveralOfOneSizeInAGroup, AreNcclsWhereARankDiffers) {
  JobOptions options = Options(4);
  options.environment_of[1] = {{"DYNAMICCL_RULES", File("other.csv", "allreduce,0,2000,ring,ll,1,-1,-1\n")}};
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_TRUE(
      LinesWith(job.AllOutput() + job.Text("decisions.0") + job.Text("decisions.1"), " rule v1").empty());
  for (const std::string& said : job.output) {
    EXPECT_THAT(said, HasSubstr("override rules: "));
    EXPECT_THAT(said, HasSubstr("on rank 1"));
  }
}

// The rank that made its communicators one by one can tell them apart and attests at once. The others cannot.
TEST_F(SeveralOfOneSizeInAGroup, AreNcclsWhereARankMadeThemOneByOne) {
  JobOptions options = Options(4);
  options.environment["JOB_APART"] = "2";
  options.environment["DYNAMICCL_ATTEST_TIMEOUT_MS"] = "400";
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  for (const char* log : {"decisions.0", "decisions.1", "decisions.2"})
    EXPECT_TRUE(LinesWith(job.Text(log), " rule v1").empty()) << log;
  EXPECT_THAT(job.output[2], HasSubstr("takes no part: NCCL initialises others of its size there"));
}

class ChunkSizes : public TunerDoors {
 protected:
  // Returns the digests of the sums that the ranks printed. They must be equal on all ranks.
  std::string SumsWith(int version, const std::string& release, const std::string& chunk) {
    return SumsWith(Options(version, release), chunk);
  }
  std::string SumsWith(JobOptions options, const std::string& chunk) {
    options.extras = {"sums"};
    options.environment["DYNAMICCL_RULES"] =
        File("rules.toml",
             "version = 1\n[[rule]]\ncollective = \"allreduce\"\nconfig = \"ring/simple/2\"\n" + chunk);
    job_ = Run(options);
    EXPECT_TRUE(job_.ok()) << job_.AllOutput();
    ExpectEqualLogs(job_, 3);
    EXPECT_EQ(LinesWith(job_.Text("decisions.0"), " Ring/Simple/2 rule v1").size(), 3u);
    const std::vector<std::string> sums = LinesWith(job_.AllOutput(), "sums ");
    EXPECT_EQ(sums, std::vector<std::string>(3, sums.at(0)));
    return sums.at(0);
  }
  JobResult job_;
};

TEST_F(ChunkSizes, OfRulesAreUsedThroughVersion6) {
  for (const char* release : {"2.30", "2.32"}) {
    SCOPED_TRACE(release);
    const std::string by_nccl = SumsWith(6, release, "");
    const std::string small = SumsWith(6, release, "chunk_bytes = 4096\n");
    EXPECT_EQ(SumsWith(7, release, "chunk_bytes = 4096\n"), small);
    EXPECT_NE(small, by_nccl);
    EXPECT_NE(SumsWith(6, release, "chunk_bytes = \"16K\"\n"), small);
    // hostccl itself uses this chunk size for Ring/Simple.
    EXPECT_EQ(SumsWith(6, release, "chunk_bytes = \"256K\"\n"), by_nccl);
    EXPECT_THAT(job_.AllOutput(), Not(HasSubstr("chunk_bytes")));
  }
}

// A chained plugin asks for chunks of 4096 bytes.
TEST_F(ChunkSizes, OfAChainedPluginAreTheDefaultThatRulesWinOver) {
  JobOptions options = Options(6, "2.32");
  options.environment["NCCL_TUNER_PLUGIN"] = DYNAMICCL_TEST_CHUNK_TUNER;
  EXPECT_EQ(SumsWith(options, ""), SumsWith(6, "2.32", "chunk_bytes = 4096\n"));
  const std::string rule = "chunk_bytes = \"16K\"\n";
  EXPECT_EQ(SumsWith(options, rule), SumsWith(6, "2.32", rule));
}

TEST_F(ChunkSizes, AreNotAskedForBeforeVersion6WhichIsSaidOnce) {
  const std::string by_nccl = SumsWith(5, "2.30", "");
  EXPECT_THAT(job_.AllOutput(), Not(HasSubstr("chunk_bytes")));
  EXPECT_EQ(SumsWith(5, "2.30", "chunk_bytes = 4096\n"), by_nccl);
  for (const std::string& said : job_.output)
    EXPECT_EQ(LinesWith(said, "'chunk_bytes' of the rules is not used").size(), 1u);
}

// Until the ranks have agreed, NCCL decides the calls and their chunks.
TEST_F(ChunkSizes, WaitForTheAgreementOfTheRanks) {
  JobOptions options = Options(6, "2.32");
  options.extras = {"sums"};
  options.rounds = "1";
  options.environment["NCCL_ALGO"] = "Ring";
  options.environment["NCCL_PROTO"] = "Simple";
  const std::string rule = "version = 1\n[[rule]]\ncollective = \"allreduce\"\nconfig = \"ring/simple\"\n";
  const auto sums = [&](const std::string& chunk) {
    options.environment["DYNAMICCL_RULES"] = File("rules.toml", rule + chunk);
    return LinesWith(Run(options).AllOutput(), "sums ");
  };
  const std::vector<std::string> by_nccl = sums("");
  ASSERT_EQ(by_nccl.size(), 3u);
  EXPECT_EQ(sums("chunk_bytes = 4096\n"), by_nccl);
  options.rounds = "2";
  EXPECT_NE(sums("chunk_bytes = 4096\n"), by_nccl);
}

// 25 rounds of 17 numbers (16 calls and a group of two) are 425 numbers. The calls 330, 331, 420 and 421 are
// timed.
class ProfilerDoors : public JobTest {
 protected:
  JobOptions Options(int version) {
    JobOptions options{.n_ranks = 2, .rounds = "25"};
    options.environment = {{"DYNAMICCL_TRACE", "%d/t.%r.ctrace"},
                           {"DYNAMICCL_TIMES", "1"},
                           {"DYNAMICCL_LOG", "info"},
                           {"NCCL_PROFILER_PLUGIN", Plugin("profiler", version)},
                           {"TEST_DYNAMICCL", DYNAMICCL_TEST_PRELOAD}};
    return options;
  }

  // Returns the call numbers of a rank's timed collectives, and the number of all its calls.
  static std::pair<std::vector<uint64_t>, size_t> TimedCalls(const JobResult& job, int rank,
                                                             DurationSource source) {
    std::pair<std::vector<uint64_t>, size_t> timed;
    const auto trace = ReadTrace(job.folder + "/t." + std::to_string(rank) + ".ctrace");
    if (!trace) ADD_FAILURE() << trace.error().message;
    if (!trace) return timed;
    for (const TraceRecord& record : trace->sections.at(0).records) {
      if (record.kind != static_cast<uint16_t>(RecordKind::kCollective)) continue;
      ++timed.second;
      if (record.duration_source == static_cast<uint8_t>(DurationSource::kNone)) continue;
      EXPECT_EQ(record.duration_source, static_cast<uint8_t>(source));
      EXPECT_GT(record.duration_ns, 0u);
      timed.first.push_back(record.call_number);
    }
    return timed;
  }
};

TEST_F(ProfilerDoors, EveryVersionTimesTheSameFewCallsByItsClock) {
  for (int version = 1; version <= 7; ++version) {
    SCOPED_TRACE(version);
    const JobResult job = Run(Options(version));
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    const auto source = version == 3 ? DurationSource::kKernelArrival : DurationSource::kKernelStamps;
    const auto [timed, calls] = TimedCalls(job, 0, source);
    EXPECT_EQ(calls, 25u * 18);
    EXPECT_EQ(TimedCalls(job, 1, source).first, timed);
    if (version <= 2) {
      EXPECT_TRUE(timed.empty());
      EXPECT_EQ(LinesWith(job.output[0], "does not tell when kernels run").size(), 1u) << job.output[0];
      continue;
    }
    EXPECT_EQ(timed, (std::vector<uint64_t>{330, 331, 420, 421}));
    EXPECT_EQ(LinesWith(job.output[0], "dynamiccl: timed 4 of 450 calls (0.89 %), 4 to their end").size(), 1u)
        << job.output[0];
  }
}

TEST_F(ProfilerDoors, WithoutBeingAskedNothingIsTimed) {
  JobOptions options = Options(7);
  options.environment.erase("DYNAMICCL_TIMES");
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_TRUE(TimedCalls(job, 0, DurationSource::kNone).first.empty());
}

// Preloading alone is enough, and so are the plugin variables alone. With both, the object must still exist
// only once.
class WaysToLoad : public JobTest {
 protected:
  JobOptions Options() {
    const std::string policy = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
    JobOptions options{.n_ranks = 2, .rounds = "20"};
    options.environment = With(kShowChoices, {{"NCCL_DEBUG_SUBSYS", "INIT,TUNING"},
                                              {"DYNAMICCL_POLICY", policy},
                                              {"DYNAMICCL_TRACE", "%d/t.%r.ctrace"},
                                              {"DYNAMICCL_TIMES", "1"},
                                              {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}});
    hash_ = ToHex(ReadPolicyFile(policy).value()->sha256);
    return options;
  }
  static Environment PluginVariables() {
    return {{"NCCL_TUNER_PLUGIN", DYNAMICCL_TEST_PRELOAD}, {"NCCL_PROFILER_PLUGIN", DYNAMICCL_TEST_PRELOAD}};
  }

  static void ExpectLoadedOnce(const JobResult& job) {
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_EQ(LinesWith(job.output[0], "TUNER/Plugin: Using DynamICCL (v7)").size(), 1u) << job.output[0];
    EXPECT_EQ(LinesWith(job.output[0], "PROFILER/Plugin: Loaded DynamICCL (v7)").size(), 1u) << job.output[0];
    ExpectEqualLogs(job, 2);
    // A second instance would be asked, decide and log a second time.
    EXPECT_EQ(LinesWith(job.Text("decisions.0"), " AllReduce 4 ").size(), 20u);
    EXPECT_GE(LinesWith(job.Text("decisions.0"), " policy v1").size(), 19u) << job.Text("decisions.0");
  }

  // Requires that the trace has each call and each decision once, and that the calls of one timing window are
  // timed.
  static void ExpectOneTrace(const JobResult& job) {
    const auto trace = ReadTrace(job.folder + "/t.0.ctrace");
    ASSERT_TRUE(trace) << trace.error().message;
    ASSERT_EQ(trace->sections.size(), 1u);
    size_t calls = 0, decisions = 0, timed = 0;
    for (const TraceRecord& record : trace->sections[0].records) {
      calls += record.kind == static_cast<uint16_t>(RecordKind::kCollective) ? 1 : 0;
      decisions += record.kind == static_cast<uint16_t>(RecordKind::kDecision) ? 1 : 0;
      timed += record.duration_source == static_cast<uint8_t>(DurationSource::kKernelStamps) ? 1 : 0;
    }
    EXPECT_EQ(calls, 20u * 18);
    EXPECT_EQ(decisions, 20u * 18);
    EXPECT_GE(timed, 2u);
  }

  std::string hash_;
};

TEST_F(WaysToLoad, PreloadingAloneIsEnough) {
  const JobResult job = Run(Options());
  ExpectLoadedOnce(job);
  ExpectOneTrace(job);
}

TEST_F(WaysToLoad, ThePluginVariablesAloneAreEnough) {
  JobOptions options = Options();
  options.preload = false;
  options.environment = With(options.environment, PluginVariables());
  options.environment["DYNAMICCL_POLICY_SHA256"] = hash_;
  const JobResult job = Run(options);
  ExpectLoadedOnce(job);
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
}

// The object does not see calls, but NCCL's questions tell the LSTM enough to apply rules by phase. All ranks
// must apply them equally.
TEST_F(WaysToLoad, ThePluginAloneTakesRulesByWhatQuestionsTell) {
  const std::string policy = folder_ + "/random.dcpolicy";
  ASSERT_TRUE(WritePolicyFile(policy, *test::MakeRandomPolicy(5)));
  std::string rules;
  for (const char* phase : {"forward", "backward", "optimizer", "other"})
    rules += fmt::format("allreduce,0,1000000,ring,simple,{},-1,-1,-1,-1,{}\n", 1 + phase[0] % 3, phase);
  JobOptions options = Options();
  options.n_ranks = 3;
  options.preload = false;
  options.environment = With(options.environment, PluginVariables());
  options.environment["DYNAMICCL_POLICY"] = policy;
  options.environment["DYNAMICCL_POLICY_SHA256"] = ToHex(ReadPolicyFile(policy).value()->sha256);
  options.environment["DYNAMICCL_RULES"] = File("rules.csv", rules);
  JobOptions vouched = options;
  vouched.environment["DYNAMICCL_RULES_SHA256"] = ToHex(Sha256Of(std::as_bytes(std::span(rules))));
  const JobResult job = Run(vouched);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  ExpectEqualLogs(job, 3);
  const std::vector<std::string> ruled = LinesWith(job.Text("decisions.0"), " rule v1");
  EXPECT_FALSE(ruled.empty()) << job.Text("decisions.0");
  for (const std::string& line : ruled)
    EXPECT_TRUE(std::regex_search(line, std::regex("AllReduce.*/(forward|backward|optimizer|other)/")))
        << line;
  for (const char* hash : {"", "0123"}) {
    options.environment["DYNAMICCL_RULES_SHA256"] = hash;
    const JobResult refused = Run(options);
    EXPECT_TRUE(refused.ok()) << refused.AllOutput();
    EXPECT_TRUE(LinesWith(refused.Text("decisions.0"), " rule v1").empty());
    EXPECT_THAT(refused.AllOutput(), HasSubstr("DYNAMICCL_RULES_SHA256 is not the hash of DYNAMICCL_RULES"));
  }
}

TEST_F(WaysToLoad, AllTogetherAreOneInstance) {
  JobOptions options = Options();
  options.environment = With(options.environment, PluginVariables());
  const JobResult job = Run(options);
  ExpectLoadedOnce(job);
  ExpectOneTrace(job);
}

}  // namespace
}  // namespace dynamiccl::testing
