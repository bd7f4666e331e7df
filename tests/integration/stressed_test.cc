// SPDX-License-Identifier: Apache-2.0
// Runs programs that treat NCCL roughly (stressed_job) with the object preloaded and at work. They must end
// as they would without it, and the object must log nothing.
#include "tests/integration/job_fixture.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::testing {
namespace {

class Stressed : public JobTest {
 protected:
  // Runs the program in each mode in which the object does something.
  void ExpectClean(const std::string& how, int times, const std::vector<std::string>& more = {}) {
    const std::string policy = PolicyFile("p", Algorithm::kRing, Protocol::kSimple);
    const Environment modes[] = {
        {{"DYNAMICCL_MODE", "observe"}, {"DYNAMICCL_TIMES", "1"}},
        {{"DYNAMICCL_MODE", "frozen"}, {"DYNAMICCL_POLICY", policy}},
        {{"DYNAMICCL_MODE", "adaptive"}, {"DYNAMICCL_POLICY", policy}},
    };
    for (const Environment& mode : modes) {
      SCOPED_TRACE(how + " in " + mode.at("DYNAMICCL_MODE"));
      JobOptions options{.n_ranks = 1, .rounds = std::to_string(times), .extras = {how}};
      options.extras.insert(options.extras.end(), more.begin(), more.end());
      options.environment = With(mode, {{"DYNAMICCL_TRACE", "%d/t.ctrace"}});
      const JobResult job = Run(options);
      EXPECT_TRUE(job.ok()) << job.exit_codes[0] << job.AllOutput();
      EXPECT_EQ(LinesWith(job.output[0], "dynamiccl"), std::vector<std::string>()) << job.AllOutput();
      const auto trace = ReadTrace(job.folder + "/t.ctrace");
      ASSERT_TRUE(trace) << trace.error().message;
      EXPECT_FALSE(trace->sections.at(0).records.empty());
    }
  }
};

TEST_F(Stressed, BySignalsAtTenKilohertz) {
  ExpectClean("signals", 500);
}

TEST_F(Stressed, ByForks) {
  ExpectClean("fork", 50);
}

TEST_F(Stressed, ByEightCommunicatorsInFourThreads) {
  ExpectClean("threads", 200);
}

TEST_F(Stressed, ByAHundredCommunicatorsAtOnce) {
  ExpectClean("hundred", 100);
}

TEST_F(Stressed, ByAbortFromAnotherThread) {
  ExpectClean("abort", 5);
}

TEST_F(Stressed, ByAnEndWithoutFinalize) {
  ExpectClean("leave", 20);
}

TEST_F(Stressed, ByCallsInAHandlerAtTheEnd) {
  ExpectClean("late", 20);
}

TEST_F(Stressed, ByClosingAndOpeningAThousandTimes) {
  ExpectClean("reopen", 1000, {DYNAMICCL_TEST_PRELOAD});
}

}  // namespace
}  // namespace dynamiccl::testing
