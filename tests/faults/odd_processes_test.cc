// SPDX-License-Identifier: Apache-2.0
// Tests wrong clocks, hosts with different uptimes, and all ways in which a process may end while its
// communicators are alive. Results must be right, all ranks must decide the same, and what was recorded must
// be readable.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>

#include "tests/integration/job_fixture.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

class OddProcesses : public JobTest {
 protected:
  // Returns a job in mode adaptive that writes all its files.
  JobOptions Recorded() const {
    JobOptions options{.n_ranks = 2, .rounds = "4"};
    options.environment = {
        {"DYNAMICCL_MODE", "adaptive"},
        {"DYNAMICCL_POLICY", PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple)},
        {"DYNAMICCL_TRACE", "%d/trace.%r"},
        {"DYNAMICCL_METRICS", "%d/metrics.%r"},
        {"DYNAMICCL_SITE_STORE", "%d/store"},
        {"DYNAMICCL_TIMES", "1"},
        {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}};
    return options;
  }

  // Returns the number of readable calls of each rank.
  static std::vector<size_t> RecordedCalls(const JobResult& job) {
    std::vector<size_t> calls;
    for (size_t rank = 0; rank < job.output.size(); ++rank) {
      const auto trace = ReadTrace(job.folder + "/trace." + std::to_string(rank));
      EXPECT_TRUE(trace.has_value()) << (trace ? "" : trace.error().message);
      calls.push_back(0);
      if (!trace) continue;
      for (const TraceSection& section : trace->sections)
        for (const TraceRecord& record : section.records)
          calls.back() += record.kind == static_cast<uint16_t>(RecordKind::kCollective) ? 1 : 0;
    }
    return calls;
  }

  // Requires that both ranks decided and recorded the same calls.
  static void ExpectAlike(const JobResult& job) {
    ExpectEqualLogs(job, 2);
    const std::vector<size_t> calls = RecordedCalls(job);
    EXPECT_GT(calls[0], 0u);
    EXPECT_EQ(calls[0], calls[1]);
  }
};

class OddClocks : public OddProcesses, public ::testing::WithParamInterface<const char*> {};

TEST_P(OddClocks, LeaveTheJobAsItIs) {
  JobOptions options = Recorded();
  options.also_preload = DYNAMICCL_TEST_ODD_CLOCK;
  options.environment["ODD_CLOCK"] = GetParam();
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  ExpectAlike(job);
}

// Checks that the clock's fault reaches the object: on one of two ranks at least, the clock must be wrong.
TEST_F(OddProcesses, LookAtTheDisturbedClock) {
  JobOptions options = Recorded();
  options.also_preload = DYNAMICCL_TEST_ODD_CLOCK;
  options.environment["ODD_CLOCK"] = "jumps";
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  double most_s = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const auto trace = ReadTrace(job.folder + "/trace." + std::to_string(rank));
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    const std::chrono::nanoseconds opened(trace->sections.at(0).opened.realtime_ns);
    most_s = std::max(most_s, std::abs(std::chrono::duration<double>(now - opened).count()));
  }
  EXPECT_GT(most_s, 60);
}

INSTANTIATE_TEST_SUITE_P(Kinds, OddClocks, ::testing::Values("jumps", "back", "coarse"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_F(OddProcesses, RanksMayHaveBeenUpForOtherTimes) {
  if (std::system("unshare --time --monotonic 1 true > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no time namespaces here, or not for this user";
  JobOptions options = Recorded();
  options.under = {"sh", "-c",
                   "if [ $RANK = 1 ]; then exec unshare --time --monotonic 8640000 \"$@\"; fi; exec \"$@\"",
                   "sh"};
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  ExpectAlike(job);
}

struct Ending {
  const char* how;  // value of $JOB_ENDS
  int exit_code;
};

class Endings : public OddProcesses, public ::testing::WithParamInterface<Ending> {};

TEST_P(Endings, LeaveWhatWasRecorded) {
  JobOptions options = Recorded();
  options.extras = {"ends"};
  options.environment["JOB_ENDS"] = GetParam().how;
  const JobResult job = Run(options);
  EXPECT_THAT(job.exit_codes, ::testing::Each(GetParam().exit_code)) << job.AllOutput();
  EXPECT_LT(job.seconds, 20) << "somebody waited for somebody";
  ExpectAlike(job);
}

INSTANTIATE_TEST_SUITE_P(Ways, Endings,
                         ::testing::Values(Ending{"return", 0}, Ending{"exit", 7},
                                           Ending{"exit_of_a_thread", 7}, Ending{"_exit", 7},
                                           Ending{"quick_exit", 7}, Ending{"abort", 128 + SIGABRT},
                                           Ending{"exception", 128 + SIGABRT}, Ending{"kill", 128 + SIGKILL},
                                           Ending{"segv", 128 + SIGSEGV}, Ending{"exec", 7}),
                         [](const auto& way) { return std::string(way.param.how); });

}  // namespace
}  // namespace dynamiccl::testing
