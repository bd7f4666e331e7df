// SPDX-License-Identifier: Apache-2.0
// Tests programs of every kind on the real NCCL, with and without DynamICCL. They use groups, several
// communicators, non-blocking and aborted communicators, captured streams, registered buffers and windows.
// Others have the call patterns of nccl-tests and PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "tests/real_nccl/asked_choices.h"
#include "tests/real_nccl/asked_tables.h"
#include "tests/real_nccl/long_run.h"
#include "tests/real_nccl/real_nccl_run.h"
#include "tests/real_nccl/require_release.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::real_nccl {

// Prints the release in the failures of parametrised tests.
void PrintTo(const NcclRelease& release, std::ostream* out) {
  *out << release.text();
}

namespace {

std::string LinesOf(const std::string& output, const std::string& part) {
  std::string found;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) found += line + "\n";
  }
  return found;
}

// Returns the choices of each thread in the thread's order, and sorts the threads. Rank 0 of each
// communicator reports on a thread of its own.
std::vector<std::string> ChoicesByThread(const std::string& output) {
  std::map<std::string, std::string> threads;
  std::istringstream lines(LinesOf(output, " Bytes -> "));
  for (std::string line; std::getline(lines, line);) {
    const size_t text = line.find(" NCCL INFO ");
    if (text != std::string::npos) threads[line.substr(0, text)] += line.substr(text + 11) + "\n";
  }
  std::vector<std::string> choices;
  for (const auto& [thread, chosen] : threads) choices.push_back(chosen);
  std::sort(choices.begin(), choices.end());
  return choices;
}

// Returns the choices of all threads, sorted. NCCL starts a new thread for each call on a communicator that
// does not block.
std::vector<std::string> ChoicesInAnyOrder(const std::string& output) {
  std::vector<std::string> choices;
  for (const std::string& thread : ChoicesByThread(output)) {
    std::istringstream lines(thread);
    for (std::string line; std::getline(lines, line);) choices.push_back(line);
  }
  std::sort(choices.begin(), choices.end());
  return choices;
}

class ScratchTest : public testing::Test {
 protected:
  ScratchTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    scratch_ = testing::TempDir() + "/real_nccl_" + test->test_suite_name() + "_" + test->name();
    std::replace(scratch_.begin() + static_cast<long>(testing::TempDir().size()) + 1, scratch_.end(), '/',
                 '_');
    std::filesystem::create_directories(scratch_);
  }
  ~ScratchTest() override { std::filesystem::remove_all(scratch_); }

  RunRequest Request(const NcclRelease& release, const std::string& program) const {
    RunRequest request;
    request.release = release;
    request.scratch_folder = scratch_;
    request.bytes = {4096, 1 << 20, 16 << 20};
    request.program = program;
    request.limit_s = 300;
    return request;
  }

  static std::string RunWell(const RunRequest& request) {
    const auto before = SharedMemoryNames();
    const RunOutcome outcome = RunDriver(request);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(LinesOf(outcome.output, "has no stand-in"), "");
    EXPECT_THAT(LeftSharedMemory(before), testing::IsEmpty());
    return outcome.output;
  }

  std::string scratch_;
};

struct Case {
  NcclRelease release;
  const char* program;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.release.text() << " " << one.program;
}

class Programs : public ScratchTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override { REAL_NCCL_REQUIRE_RELEASE(GetParam().release); }
};

TEST_P(Programs, RunAsWithoutUsWhileTheyAreRecorded) {
  RunRequest request = Request(GetParam().release, GetParam().program);
  const std::string alone = RunWell(request);
  request.door = Door::kPreload;
  request.environment = {{"DYNAMICCL_MODE", "observe"}, {"DYNAMICCL_TRACE", scratch_ + "/observed.ctrace"}};
  const std::string observed = RunWell(request);
  EXPECT_FALSE(ChoicesInAnyOrder(alone).empty());
  if (request.program == "nonblocking")
    EXPECT_EQ(ChoicesInAnyOrder(alone), ChoicesInAnyOrder(observed));
  else
    EXPECT_EQ(ChoicesByThread(alone), ChoicesByThread(observed));
}

// Checks that the ranks of each communicator decided alike. The number of times that a line was logged is
// then a multiple of the number of ranks. As soon as one rank decides otherwise, the greatest common divisor
// of these numbers is 1.
void ExpectRanksDecidedAlike(const std::string& path) {
  std::map<std::string, std::map<std::string, int>> communicators;
  std::ifstream log(path);
  for (std::string line; std::getline(log, line);) ++communicators[line.substr(0, line.find(' '))][line];
  EXPECT_FALSE(communicators.empty());
  for (const auto& [communicator, lines] : communicators) {
    int divisor = 0;
    for (const auto& [line, times] : lines) divisor = std::gcd(divisor, times);
    EXPECT_GT(divisor, 1) << communicator << ", for example " << lines.begin()->first;
  }
}

TEST_P(Programs, EndWellAndDecideAlikeUnderRulesAndAPolicy) {
  RunRequest request = Request(GetParam().release, GetParam().program);
  request.door = Door::kPreload;
  WriteSomeRules(scratch_ + "/rules.csv");
  WriteRandomPolicy(scratch_ + "/random.dcpolicy", 20);
  request.environment = {{"DYNAMICCL_RULES", scratch_ + "/rules.csv"},
                         {"DYNAMICCL_POLICY", scratch_ + "/random.dcpolicy"},
                         {"DYNAMICCL_DECISION_LOG", scratch_ + "/decisions"},
                         {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"}};
  RunWell(request);
  ExpectRanksDecidedAlike(scratch_ + "/decisions");
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const char* program : {"groups", "communicators", "nonblocking", "abort", "capture", "registered",
                              "windows", "nccl_tests", "process_group", "nccl2"})
    cases.push_back({{2, 32, 3}, program});
  for (const char* program : {"groups", "communicators", "process_group", "nccl2"})
    cases.push_back({{2, 28, 9}, program});
  for (const NcclRelease release : {NcclRelease{2, 21, 5}, NcclRelease{2, 22, 3}, NcclRelease{2, 24, 3}})
    cases.push_back({release, "nccl2"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(RealNccl, Programs, testing::ValuesIn(AllCases()), [](const auto& one) {
  std::string name = std::string(one.param.program) + "_" + one.param.release.text();
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

class RealNcclFacts : public ScratchTest, public testing::WithParamInterface<NcclRelease> {
 protected:
  void SetUp() override { REAL_NCCL_REQUIRE_RELEASE(GetParam()); }

  // Returns what NCCL asked a tuner that changes nothing on one rank, in order.
  std::vector<AskedTable> QuestionsIn(const std::string& program) {
    RunRequest request = Request(GetParam(), program);
    request.nodes = 1;
    request.environment = {{"NCCL_TUNER_PLUGIN", REAL_NCCL_TABLE_TUNER},
                           {"TABLE_TUNER_FILE", scratch_ + "/tables"}};
    output_ = RunWell(request);
    return ReadAskedTables(scratch_ + "/tables").tables;
  }

  std::string output_;
};

// From 2.31 on NCCL first asks with 0 pipelined operations, and does not use that answer.
TEST_P(RealNcclFacts, AsksOnceMoreWithNoOperationsFrom231On) {
  const auto questions = QuestionsIn("collectives");
  const auto extra =
      std::count_if(questions.begin(), questions.end(), [](const AskedTable& q) { return q.pipe_ops == 0; });
  const long calls = 3 * 5;  // 3 sizes, 5 collectives
  if (GetParam().only_limits_channels())
    EXPECT_GE(extra, calls);  // within a node NCCL asks this twice for some calls
  else
    EXPECT_EQ(extra, 0);
  EXPECT_EQ(std::ssize(questions) - extra, calls);
}

TEST_P(RealNcclFacts, MergesCallsOfAGroupIntoOneQuestion) {
  const auto questions = QuestionsIn("groups");
  const auto merged = std::find_if(questions.begin(), questions.end(), [](const AskedTable& q) {
    return q.pipe_ops > 0 && q.bytes != 4096 && q.bytes % 4096 == 0 && q.collective == Collective::kAllReduce;
  });
  ASSERT_NE(merged, questions.end());
  EXPECT_GE(merged->bytes, 3 * 4096u) << "4, 8 and 16 KiB, of which at least two are one question";
}

TEST_P(RealNcclFacts, SaysThatBuffersAreRegistered) {
  const auto questions = QuestionsIn("registered");
  const auto registered = std::count_if(questions.begin(), questions.end(), [](const AskedTable& q) {
    return q.registered != 0 && q.pipe_ops > 0;
  });
  EXPECT_GT(registered, 0);
  EXPECT_LT(registered, std::ssize(questions));
}

// Each size has three calls on a window and three calls without one.
TEST_P(RealNcclFacts, CallsOnSymmetricWindowsDoNotReachATuner) {
  const auto questions = QuestionsIn("windows");
  const auto asked =
      std::count_if(questions.begin(), questions.end(), [](const AskedTable& q) { return q.pipe_ops > 0; });
  std::istringstream symmetric(LinesOf(output_, "[Symmetric]"));
  long bypassed = 0;
  for (std::string line; std::getline(symmetric, line);) ++bypassed;
  EXPECT_GT(bypassed, 0);
  EXPECT_EQ(asked + bypassed, 3 * 6) << output_;
}

// The test needs a tuner, because without one every collective counts as tunable.
TEST_P(RealNcclFacts, CallsOnSymmetricWindowsAreCountedAsSuch) {
  RunRequest request = Request(GetParam(), "windows");
  request.nodes = 1;
  request.door = Door::kPreload;
  std::ofstream(scratch_ + "/rules.csv") << "allreduce,0,1073741824,ring,ll,-1,-1,-1\n";
  request.environment = {{"DYNAMICCL_RULES", scratch_ + "/rules.csv"},
                         {"DYNAMICCL_ATTEST_TIMEOUT_MS", "60000"},
                         {"DYNAMICCL_TRACE", scratch_ + "/windows.ctrace"}};
  const std::string output = RunWell(request);
  std::istringstream symmetric(LinesOf(output, "[Symmetric]"));
  long bypassed = 0;
  for (std::string line; std::getline(symmetric, line);) ++bypassed;
  const auto trace = ReadTrace(scratch_ + "/windows.ctrace");
  ASSERT_TRUE(trace) << trace.error().message;
  std::map<Coverage, long> calls;
  for (const TraceRecord& record : trace->sections.at(0).records) {
    if (record.kind == static_cast<uint16_t>(RecordKind::kCollective)) ++calls[CoverageOf(record)];
  }
  EXPECT_EQ(calls[Coverage::kSymmetricKernel], bypassed * request.ranks_per_node);
  EXPECT_EQ(calls[Coverage::kNotAsked], 0);
}

TEST_P(RealNcclFacts, WhatAUserPinnedStays) {
  RunRequest request = Request(GetParam(), "collectives");
  request.bytes = {65536, 65536, 16 << 20, 16 << 20};
  const Environment pins = {
      {"NCCL_ALGO", "allreduce:tree;allgather:ring;reducescatter:ring;broadcast:ring;reduce:ring"},
      {"NCCL_PROTO", "Simple"}};
  request.environment = pins;
  const std::string alone = RunWell(request);
  request.door = Door::kPreload;
  std::ofstream(scratch_ + "/rules.csv") << "allreduce,0,1073741824,ring,ll,-1,-1,-1\n"
                                            "allgather,0,1073741824,ring,ll,-1,-1,-1\n";
  request.environment["DYNAMICCL_RULES"] = scratch_ + "/rules.csv";
  request.environment["DYNAMICCL_ATTEST_TIMEOUT_MS"] = "60000";
  EXPECT_EQ(ChoicesByThread(alone), ChoicesByThread(RunWell(request)));
}

// The witness is the job's own profiler plugin. With DYNAMICCL_TIMES it is chained behind DynamICCL's
// profiler.
TEST_P(RealNcclFacts, AJobsOwnProfilerGetsTheSameEventsBehindOurs) {
  RunRequest request = Request(GetParam(), "collectives");
  request.environment = {{"NCCL_PROFILER_PLUGIN", REAL_NCCL_WITNESS}};
  const auto events = [](const std::string& output) {
    std::istringstream lines(LinesOf(output, "witness: "));
    std::vector<std::string> sorted;
    for (std::string line; std::getline(lines, line);) sorted.push_back(line);
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  };
  const auto alone = events(RunWell(request));
  // From 2.29 on NCCL reports no Broadcast to a profiler.
  const int reported = GetParam() >= NcclRelease{2, 29, 0} ? 4 : 5;
  EXPECT_EQ(alone.size(), static_cast<size_t>(3 * reported * request.ranks()));
  request.door = Door::kPreload;
  request.environment["DYNAMICCL_MODE"] = "observe";
  request.environment["DYNAMICCL_TRACE"] = scratch_ + "/observed.ctrace";
  request.environment["DYNAMICCL_TIMES"] = "1";
  EXPECT_EQ(alone, events(RunWell(request)));
}

TEST_P(RealNcclFacts, SeveralRanksShareOneGpu) {
  if (!GetParam().shares_gpus()) GTEST_SKIP() << "NCCL before 2.30.3 refuses two ranks on one GPU";
  RunRequest request = Request(GetParam(), "collectives");
  request.machine = "one_h100";
  request.nodes = 1;
  request.ranks_per_node = 4;
  request.environment = {{"NCCL_MULTI_RANK_GPU_ENABLE", "1"}, {"NCCL_NVLS_ENABLE", "0"}};
  EXPECT_EQ(ChoicesByThread(RunWell(request)).size(), 1u);
}

TEST_P(RealNcclFacts, FourProcessesTakeTheSameDecisions) {
  const LongRunResult result = RunLong({.release = GetParam(), .decisions = 2000, .scratch = scratch_});
  EXPECT_EQ(result.trouble, "");
  EXPECT_GE(result.decisions, 2000u);
  EXPECT_EQ(result.log_lines, result.decisions);
}

INSTANTIATE_TEST_SUITE_P(RealNccl, RealNcclFacts,
                         testing::Values(NcclRelease{2, 28, 9}, NcclRelease{2, 32, 3}),
                         [](const auto& one) { return "Nccl2_" + std::to_string(one.param.minor); });

// The release lacks a function that the whole program needs. The driver runs nothing and says why.
TEST_F(ScratchTest, ProgramThatNeedsANewerReleaseIsSkippedVisibly) {
  const NcclRelease release = {2, 21, 5};
  REAL_NCCL_REQUIRE_RELEASE(release);
  const RunOutcome outcome = RunDriver(Request(release, "windows"));
  EXPECT_EQ(outcome.exit_code, kNothingToRun) << outcome.output;
  EXPECT_EQ(LinesOf(outcome.output, "driver: "),
            "driver: skipped windows: NCCL 2.21.5 has no ncclCommWindowRegister, which came with 2.27.3\n");
}

// The release lacks a function that one call of the program needs. The driver skips that call and makes the
// others.
TEST_F(ScratchTest, CallThatNeedsANewerReleaseIsSkippedVisibly) {
  const NcclRelease release = {2, 21, 5};
  REAL_NCCL_REQUIRE_RELEASE(release);
  const std::string output = RunWell(Request(release, "groups"));
  const std::string skipped =
      "driver: skipped Simulated: NCCL 2.21.5 has no ncclGroupSimulateEnd, which came with 2.22.3\n";
  EXPECT_EQ(LinesOf(output, "driver: skipped"), skipped + skipped + skipped) << "once a size";
}

}  // namespace
}  // namespace dynamiccl::real_nccl
