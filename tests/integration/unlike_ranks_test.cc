// SPDX-License-Identifier: Apache-2.0
// Tests ranks that differ, and communicators made in every way. Where ranks differ, all of them must use
// NCCL's choice, a log line must name the rank and the difference, and the job must continue.
#include <algorithm>

#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

class UnlikeRanks : public JobTest {
 protected:
  JobOptions Options(const std::vector<std::string>& extras, int n_ranks = 3) const {
    JobOptions options{.n_ranks = n_ranks, .rounds = "4", .extras = extras};
    options.environment = {{"DYNAMICCL_RULES", rules_}, {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}};
    return options;
  }

  void ExpectDefaultOnAllRanksAndNamed(const JobOptions& options, const std::string& difference) {
    const JobResult job = Run(options);
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    for (int rank = 0; rank < options.n_ranks; ++rank) {
      const std::string& said = job.output[static_cast<size_t>(rank)];
      EXPECT_TRUE(LinesWith(job.Text("decisions." + std::to_string(rank)), " rule ").empty());
      EXPECT_THAT(said, HasSubstr("rank " + std::to_string(rank) + " keeps NCCL's choice: "));
      EXPECT_THAT(said, HasSubstr(difference));
      EXPECT_THAT(said, HasSubstr("on rank 1"));
    }
  }

  const std::string rules_ =
      File("rules.csv", "allreduce,0,1000000,ring,simple,2,-1,-1\nallgather,0,1000000,ring,simple,3,-1,-1\n");
};

// Returns a copy of the object with another build id, as another build would have.
std::string OtherBuild(const std::string& folder) {
  std::ifstream file(DYNAMICCL_TEST_PRELOAD, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  // An ELF note with a name of 4 bytes, an id of 20 bytes and the type NT_GNU_BUILD_ID.
  const std::string note("\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16);
  const size_t id = bytes.find(note) + note.size();
  bytes[id] = static_cast<char>(bytes[id] ^ 1);
  std::ofstream(folder + "/other.so", std::ios::binary) << bytes;
  return folder + "/other.so";
}

TEST_F(UnlikeRanks, AnotherBuildOnOneRank) {
  JobOptions options = Options({});
  options.preload_of[1] = OtherBuild(folder_);
  ExpectDefaultOnAllRanksAndNamed(options, "build of libdynamiccl.so: ");
}

TEST_F(UnlikeRanks, AnotherNcclOnOneRank) {
  JobOptions options = Options({});
  options.preload_of[1] = DYNAMICCL_TEST_PRELOAD ":" DYNAMICCL_TEST_OTHER_VERSION;
  ExpectDefaultOnAllRanksAndNamed(options, "NCCL version: ");
}

TEST_F(UnlikeRanks, AnotherSettingWhereCommunicatorsAreMadeInGroupsOrBySplitOrNonBlocking) {
  for (const char* way : {"grouped", "split", "nonblocking"}) {
    SCOPED_TRACE(way);
    JobOptions options = Options({way});
    const JobResult alike = Run(options);
    EXPECT_TRUE(alike.ok()) << alike.AllOutput();
    EXPECT_FALSE(LinesWith(alike.Text("decisions.0"), " rule v1").empty()) << alike.AllOutput();
    EXPECT_THAT(alike.AllOutput(), Not(HasSubstr("keeps NCCL's choice")));
    options.environment_of[1] = {{"DYNAMICCL_RULES", File("other.csv", "# none\n")}};
    ExpectDefaultOnAllRanksAndNamed(options, "override rules: ");
  }
}

// Tests minCTAs and maxCTAs of ncclConfig_t. No fabric in this test has 60 channels, so the library's own
// choice is the same on all ranks.
TEST_F(UnlikeRanks, OtherCtasOfTheCommunicatorOnOneRank) {
  JobOptions options = Options({"ctas"});
  options.environment_of[1] = {{"JOB_MAX_CTAS", "60"}};
  ExpectDefaultOnAllRanksAndNamed(options, " maxCTAs=60 on rank 1");
  options.environment["NCCL_NTHREADS"] = "256";
  ExpectDefaultOnAllRanksAndNamed(options, "; maxCTAs=60 on rank 1");
}

// The survivors' communicator attests again, at the address at which its parent attested.
TEST_F(UnlikeRanks, ShrinkAfterTheDeathOfARankAgreesAgain) {
  JobOptions options = Options({"shrink"});
  options.environment["JOB_DIES"] = "2";
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(job.Text("decisions.0"), job.Text("decisions.1"));
  const std::string log = job.Text("decisions.0");
  const std::string last = log.substr(log.rfind('\n', log.size() - 2) + 1, 16);
  EXPECT_NE(last, log.substr(0, 16));
  EXPECT_FALSE(LinesWith(LinesWith(log, last).back(), " rule v1").empty()) << job.AllOutput();
}

// Rank 0 was the address at which the ranks could attest.
TEST_F(UnlikeRanks, ShrinkAfterTheDeathOfRankZeroMeansDefault) {
  JobOptions options = Options({"shrink"});
  options.environment["JOB_DIES"] = "0";
  options.environment["DYNAMICCL_ATTEST_TIMEOUT_MS"] = "1000";
  const JobResult job = Run(options);
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_EQ(job.Text("decisions.1"), job.Text("decisions.2"));
  for (const size_t rank : {1u, 2u})
    EXPECT_THAT(job.output[rank], HasSubstr("keeps NCCL's choice: no answer from 127.0.0.1")) << rank;
}

}  // namespace
}  // namespace dynamiccl::testing
