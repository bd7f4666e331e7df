// SPDX-License-Identifier: Apache-2.0
// Tests tables that change while jobs of several processes run: because the policy file is replaced, or
// because a rank decided differently.
#include <algorithm>
#include <chrono>
#include <future>

#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

// Jobs in mode adaptive whose policy file is replaced while they run.
class ChangedPolicy : public JobTest {
 protected:
  void Start(JobOptions options) {
    options.environment = With(options.environment, {{"DYNAMICCL_POLICY", path_},
                                                     {"DYNAMICCL_MODE", "adaptive"},
                                                     // Without a guard all versions come from the file.
                                                     {"DYNAMICCL_TIMES", "0"},
                                                     {"DYNAMICCL_DECISION_LOG", folder_ + "/decisions.%r"}});
    running_ = std::async(std::launch::async, [this, options] { return Run(options); });
    // Waits until every rank has attested the first policy.
    for (int rank = 0; rank < options.n_ranks; ++rank) {
      const std::string log = folder_ + "/decisions." + std::to_string(rank);
      while (!Ended(10) && (!std::filesystem::exists(log) || std::filesystem::file_size(log) == 0)) continue;
    }
  }
  bool Ended(int within_ms) const {
    return running_.wait_for(std::chrono::milliseconds(within_ms)) == std::future_status::ready;
  }
  void Replace(Protocol protocol) const {
    std::filesystem::rename(PolicyFile("next", Algorithm::kRing, protocol), path_);
  }
  // Ends the job. Returns its result with the logs.
  JobResult End() {
    JobResult job = running_.get();
    job.folder = folder_;
    return job;
  }

  const std::string path_ = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  std::future<JobResult> running_;
};

// Replaces the policy again and again while the ranks of the job are apart. Every rank must take each new
// table at the same call, or none takes it.
TEST_F(ChangedPolicy, IsTakenUpByAllRanksAtTheSameCall) {
  Start({.n_ranks = 4, .rounds = "400"});
  constexpr Protocol kTurns[] = {Protocol::kLL, Protocol::kSimple};
  for (size_t turn = 0; !Ended(0); ++turn) {
    Replace(kTurns[turn % 2]);
    Ended(300);
  }
  const JobResult job = End();
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  ExpectEqualLogs(job, 4);
  const std::string log = job.Text("decisions.0");
  EXPECT_FALSE(LinesWith(log, "Ring/Simple/").empty());
  EXPECT_FALSE(LinesWith(log, " policy v2").empty());
}

// The first policy recognises only scalars, by their size. The second is a random network, which recognises
// some role for most calls.
TEST_F(ChangedPolicy, BringsItsStructureLstmAtTheSameCall) {
  Start({.n_ranks = 3, .rounds = "200"});
  EXPECT_TRUE(WritePolicyFile(folder_ + "/next", *test::MakeRandomPolicy(5)));
  std::filesystem::rename(folder_ + "/next", path_);
  const JobResult job = End();
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  ExpectEqualLogs(job, 3);
  const std::string log = job.Text("decisions.0");
  const std::vector<std::string> before = LinesWith(log, " v1");
  const std::vector<std::string> after = LinesWith(log, " v2");
  ASSERT_FALSE(after.empty());
  const auto unknown = [](const std::string& line) {
    return line.find(" unknown ") != std::string::npos ||
           line.find(" AllReduce 4 scalar ") != std::string::npos;
  };
  EXPECT_TRUE(std::all_of(before.begin(), before.end(), unknown));
  EXPECT_TRUE(unknown(after.front()));
  EXPECT_FALSE(std::all_of(after.begin(), after.end(), unknown));
}

TEST_F(ChangedPolicy, OfOneRankAloneIsTakenUpByNoneAndTheRankIsNamed) {
  JobOptions options{.n_ranks = 3, .rounds = "400"};
  options.environment_of[1] = {
      {"DYNAMICCL_POLICY", PolicyFile("own.dcpolicy", Algorithm::kRing, Protocol::kSimple)}};
  Start(options);
  Replace(Protocol::kLL);
  const JobResult job = End();
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  ExpectEqualLogs(job, 3);
  EXPECT_TRUE(LinesWith(job.Text("decisions.0"), " policy v2").empty());
  EXPECT_THAT(job.AllOutput(), HasSubstr("rank 1 does not have the same file"));
}

// One decision among thousands differs on rank 1. After that, a new policy file must change nothing.
TEST_F(ChangedPolicy, RankThatDecidesOtherwiseIsNamedAndAllGoBackToNcclsChoice) {
  JobOptions options{.n_ranks = 3, .rounds = "1", .extras = {"stalls"}};
  options.preload_of[1] = DYNAMICCL_TEST_FORGETFUL_NCCL ":" DYNAMICCL_TEST_PRELOAD;
  options.environment_of[1] = {{"TEST_FORGETS_AT", "700"}};
  options.environment = {{"JOB_GOES_ON", File("go_on", "")}};
  Start(options);
  const auto in_use = [this](const char* version) {
    std::ifstream log(folder_ + "/decisions.0", std::ios::binary);
    return !LinesWith(std::string(std::istreambuf_iterator<char>(log), {}), version).empty();
  };
  while (!Ended(50) && !in_use(" v0")) continue;
  Replace(Protocol::kLL);
  Ended(1000);
  std::filesystem::remove(folder_ + "/go_on");
  const JobResult job = End();
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.AllOutput(), HasSubstr("NCCL no longer offers Ring/Simple for AllReduce"));
  EXPECT_THAT(job.output[0],
              HasSubstr("on a communicator of 3 ranks rank 1 decided otherwise than most ranks"));
  EXPECT_EQ(job.Text("decisions.0"), job.Text("decisions.2"));
  EXPECT_EQ(LinesWith(job.Text("decisions.0"), " v0"), LinesWith(job.Text("decisions.1"), " v0"));
  EXPECT_FALSE(in_use(" v2")) << "or later";
}

}  // namespace
}  // namespace dynamiccl::testing
