// SPDX-License-Identifier: Apache-2.0
// Tests live values in jobs of several processes. What a program reads at the start of its steps must be the
// same on all ranks, whichever rank proposes another value, at any time.
#include <set>
#include <sstream>

#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kRanks = 4;

class AgreedValuesOfJobs : public JobTest {
 protected:
  static JobOptions Options(const Environment& more, int steps = 1500) {
    JobOptions options{.n_ranks = kRanks, .rounds = "1", .extras = {"values"}};
    options.environment =
        With({{"DYNAMICCL_MODE", "adaptive"}, {"JOB_STEPS", std::to_string(steps)}, {"JOB_SEED", "1"}}, more);
    return options;
  }
  static std::vector<std::string> StepsOf(const JobResult& job, int rank) {
    std::vector<std::string> lines;
    std::istringstream text(job.Text("values." + std::to_string(rank)));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  // Requires that all ranks read the same in every step that all of them began. Returns the different values.
  static std::set<std::string> NumbersOfAll(const JobResult& job) {
    std::set<std::string> numbers;
    const std::vector<std::string> first = StepsOf(job, 0);
    EXPECT_THAT(first, Not(IsEmpty())) << job.AllOutput();
    for (int rank = 1; rank < kRanks; ++rank) {
      const std::vector<std::string> steps = StepsOf(job, rank);
      for (size_t step = 0; step < std::min(first.size(), steps.size()); ++step)
        EXPECT_EQ(steps[step], first[step]) << "rank " << rank;
    }
    for (const std::string& line : first) numbers.insert(line.substr(line.find(' ')));
    return numbers;
  }
};

TEST_F(AgreedValuesOfJobs, AreTheSameOnAllRanksInEachStep) {
  for (const char* seed : {"1", "2", "3"}) {
    const JobResult job = Run(Options({{"JOB_SEED", seed}, {"DYNAMICCL_TIMES", "0"}}));
    ASSERT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_GT(NumbersOfAll(job).size(), 3u) << "hardly anything changed";
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(StepsOf(job, rank).size(), 1501u);
      EXPECT_EQ(StepsOf(job, rank).back(), "after 4") << "the communicator is gone";
    }
  }
}

// Versions of the guard come in between, with its samples and trials.
TEST_F(AgreedValuesOfJobs, ChangeBesideThePolicyAndItsGuard) {
  const std::string policy = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  JobOptions options = Options({{"DYNAMICCL_POLICY", policy}, {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}});
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_GT(NumbersOfAll(job).size(), 3u);
  ExpectEqualLogs(job, kRanks);
}

TEST_F(AgreedValuesOfJobs, StayTheProgramsOwnWhereNothingIsSwitched) {
  const std::string policy = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  for (const Environment& other :
       {Environment{{"DYNAMICCL_MODE", "off"}},
        Environment{{"DYNAMICCL_MODE", "frozen"}, {"DYNAMICCL_POLICY", policy}},
        Environment{{"DYNAMICCL_MODE", "observe"}, {"DYNAMICCL_TRACE", "%d/%r.ctrace"}}}) {
    const JobResult job = Run(Options(other, 200));
    ASSERT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_EQ(NumbersOfAll(job), (std::set<std::string>{" 4"}));
  }
  JobOptions without = Options({}, 200);
  without.preload = false;
  EXPECT_EQ(NumbersOfAll(Run(without)), (std::set<std::string>{" 4"}));
}

TEST_F(AgreedValuesOfJobs, StayTheProgramsOwnIfOneRankTakesNoPart) {
  JobOptions options = Options({{"DYNAMICCL_TIMES", "0"}}, 200);
  options.environment_of[2] = {{"DYNAMICCL_MODE", "observe"}, {"DYNAMICCL_TRACE", "%d/2.ctrace"}};
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(NumbersOfAll(job), (std::set<std::string>{" 4"}));
}

TEST_F(AgreedValuesOfJobs, AreTheSameUpToTheStepInWhichARankDies) {
  for (const char* dies_in : {"311", "702"}) {
    const JobResult job = Run(Options({{"JOB_DIES", "2"},
                                       {"JOB_DIES_IN", dies_in},
                                       {"JOB_SEED", dies_in},
                                       {"DYNAMICCL_TIMES", "0"},
                                       {"HOSTCCL_TIMEOUT_MS", "3000"}}));
    EXPECT_FALSE(job.ok());
    EXPECT_GT(NumbersOfAll(job).size(), 1u);
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_LT(job.exit_codes[static_cast<size_t>(rank)], 128);
  }
}

TEST_F(AgreedValuesOfJobs, NonBlockingCommunicatorHasNone) {
  JobOptions options = Options({{"DYNAMICCL_TIMES", "0"}});
  options.extras = {"nonblocking"};
  options.rounds = "20";
  const JobResult job = Run(options);
  EXPECT_TRUE(job.ok()) << job.AllOutput();
}

TEST_F(AgreedValuesOfJobs, ComeFromTheFileThatTheJobWatches) {
  const JobResult job =
      Run(Options({{"DYNAMICCL_TIMES", "0"}, {"DYNAMICCL_VALUES", File("values", "bucket=3\n")}}));
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_TRUE(NumbersOfAll(job).contains(" 3"));
}

}  // namespace
}  // namespace dynamiccl::testing
