// SPDX-License-Identifier: Apache-2.0
// Tests rules that name a level of memory pressure, in jobs of several processes. All ranks must follow the
// level of rank 0 from the same call on.
#include <sstream>

#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

class MemoryPressureOfJobs : public JobTest {
 protected:
  // Returns rules that use Ring/LL with one channel for AllGathers and AllReduces at these levels.
  std::string Rules(const std::vector<std::string>& levels) const {
    std::string text = "version = 3\n";
    for (const std::string& level : levels) {
      for (const char* collective : {"allgather", "allreduce"})
        text += "[[rule]]\ncollective = \"" + std::string(collective) + "\"\nmemory = \"" + level +
                "\"\nconfig = \"ring/ll/1\"\n";
    }
    return File("rules.toml", text);
  }
  static JobOptions Options(const std::string& rules, const Environment& more = {}) {
    JobOptions options{.n_ranks = kRanks, .rounds = "600"};
    options.environment = With({{"DYNAMICCL_MODE", "adaptive"},
                                {"DYNAMICCL_TIMES", "0"},
                                {"DYNAMICCL_RULES", rules},
                                {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}},
                               more);
    return options;
  }
  // Decisions of rank 0 about one collective: the log lines of those that a rule made, and the number of all
  // others.
  struct Decided {
    std::vector<std::string> by_rule;
    int otherwise = 0;
  };
  static Decided DecidedIn(const JobResult& job, const std::string& collective = "AllGather") {
    Decided decided;
    std::istringstream text(job.Text("decisions.0"));
    for (std::string line; std::getline(text, line);) {
      if (line.find(" " + collective + " ") == std::string::npos) continue;
      if (line.find(" rule ") != std::string::npos)
        decided.by_rule.push_back(line);
      else
        ++decided.otherwise;
    }
    return decided;
  }
};

// The job's program reports that a twentieth of its memory is free.
TEST_F(MemoryPressureOfJobs, RuleHoldsOnAllRanksOnceTheyAgreedOnTheLevel) {
  const JobResult job = Run(Options(Rules({"high"})));
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  ExpectEqualLogs(job, kRanks);
  const Decided decided = DecidedIn(job);
  ASSERT_FALSE(decided.by_rule.empty()) << job.AllOutput();
  EXPECT_GT(decided.otherwise, 0) << "nothing is agreed at the first call";
  EXPECT_THAT(decided.by_rule.back(), HasSubstr(" unknown/unknown/unknown/high Ring/LL/1 rule "));
}

TEST_F(MemoryPressureOfJobs, LevelIsSampledWhereTheProgramSaysNothing) {
  JobOptions options = Options(Rules({"low", "medium", "high"}), {{"JOB_STEPS", "15000"}, {"JOB_SEED", "1"}});
  options.rounds = "1";
  options.extras = {"values"};
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  ExpectEqualLogs(job, kRanks);
  EXPECT_FALSE(DecidedIn(job, "AllReduce").by_rule.empty()) << job.AllOutput();
}

TEST_F(MemoryPressureOfJobs, OtherLevelMatchesNothing) {
  const JobResult job = Run(Options(Rules({"low", "medium"})));
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_TRUE(DecidedIn(job).by_rule.empty());
}

TEST_F(MemoryPressureOfJobs, OperatorMayNameTheLevel) {
  const JobResult job =
      Run(Options(Rules({"medium"}), {{"DYNAMICCL_VALUES", File("values", "memory_pressure=1\n")}}));
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  ExpectEqualLogs(job, kRanks);
  EXPECT_FALSE(DecidedIn(job).by_rule.empty()) << job.AllOutput();
}

TEST_F(MemoryPressureOfJobs, ModeFrozenAgreesOnNoneAndSaysSo) {
  const JobResult job = Run(Options(Rules({"high"}), {{"DYNAMICCL_MODE", "frozen"}}));
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_TRUE(DecidedIn(job).by_rule.empty());
  EXPECT_EQ(LinesWith(job.output[0], "rules name a level of memory pressure").size(), 1u) << job.output[0];
}

}  // namespace
}  // namespace dynamiccl::testing
