// SPDX-License-Identifier: Apache-2.0
// Tests rules for communicators. Such a rule bounds the number of channels. NCCL accepts the bounds only when
// it initialises the communicator, so all ranks must set them or none.
#include <algorithm>

#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Ring/Simple with more channels than NCCL uses for 4 bytes. From NCCL 2.31 on, the number of channels that a
// tuner names is only an upper limit.
constexpr const char* kRule = "[[rule]]\ncollective = \"allreduce\"\nconfig = \"ring/simple/4\"\n";
constexpr const char* kThree = "[[communicator]]\nranks = 3\nmin_ctas = 3\n";

class CommunicatorCtas : public JobTest {
 protected:
  std::string Rules(const std::string& communicators) {
    return File("rules" + std::to_string(n_rules_++) + ".toml", "version = 1\n" + communicators + kRule);
  }
  JobOptions Options(const std::string& communicators, const std::vector<std::string>& extras = {}) {
    JobOptions options{.n_ranks = 3, .rounds = "4", .extras = extras};
    options.environment = With(kShowChoices, {{"DYNAMICCL_RULES", Rules(communicators)},
                                              {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"},
                                              {"HOSTCCL_EMULATE", "2.32"}});
    return options;
  }
  JobResult RunWell(const JobOptions& options) {
    JobResult job = Run(options);
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    return job;
  }
  // Returns the channels of the AllReduces of 4 bytes, sorted, as hostccl used them.
  static std::vector<std::string> ChannelsOfSmallest(const JobResult& job) {
    std::vector<std::string> channels;
    for (const std::string& line : LinesWith(job.output[0], "AllReduce: 4 Bytes -> "))
      channels.push_back(line.substr(line.find("channel{")));
    std::sort(channels.begin(), channels.end());
    return channels;
  }
  // Requires that no bound was set, and that each rank logs one line with these reasons.
  void ExpectAsAsked(const JobResult& job, const std::vector<std::string>& why) {
    EXPECT_EQ(ChannelsOfSmallest(job), ChannelsOfSmallest(RunWell(Options(""))));
    for (size_t rank = 0; rank < job.output.size(); ++rank) {
      const auto said = LinesWith(job.output[rank], "initialises a communicator as the program asks: ");
      ASSERT_THAT(said, SizeIs(1)) << job.AllOutput();
      EXPECT_THAT(said[0], HasSubstr("rank " + std::to_string(rank)));
      for (const std::string& part : why) EXPECT_THAT(said[0], HasSubstr(part));
    }
  }

 private:
  int n_rules_ = 0;
};

TEST_F(CommunicatorCtas, RaiseTheChannelsOfEveryCall) {
  const JobResult without = RunWell(Options(""));
  EXPECT_THAT(ChannelsOfSmallest(without), Each("channel{Lo..Hi}={0..0}"));
  JobOptions options = Options(kThree);
  options.environment["DYNAMICCL_LOG"] = "info";
  const JobResult with = RunWell(options);
  for (const std::string& output : with.output)
    EXPECT_THAT(LinesWith(output, "initialises a communicator with minCTAs=3 maxCTAs="), SizeIs(1)) << output;
  EXPECT_THAT(ChannelsOfSmallest(with), SizeIs(ChannelsOfSmallest(without).size()));
  EXPECT_THAT(ChannelsOfSmallest(with), Each("channel{Lo..Hi}={0..2}"));
  // The rule set these bounds, not the program, so the tuner still names a number of channels.
  EXPECT_FALSE(LinesWith(with.Text("decisions.0"), " Ring/Simple/4 rule v1").empty());
  ExpectEqualLogs(with, 3);
  EXPECT_THAT(with.AllOutput(), Not(HasSubstr("as the program asks")));
}

TEST_F(CommunicatorCtas, AreThoseOfTheFirstRuleThatMatches) {
  const JobResult other = RunWell(Options("[[communicator]]\nranks = 4\nmin_ctas = 3\n"));
  EXPECT_THAT(ChannelsOfSmallest(other), Each("channel{Lo..Hi}={0..0}"));
  EXPECT_THAT(other.AllOutput(), Not(HasSubstr("as the program asks")));
}

TEST_F(CommunicatorCtas, LeaveWhatTheProgramPinned) {
  JobOptions options = Options(kThree, {"ctas"});
  options.environment["JOB_MIN_CTAS"] = "2";
  EXPECT_THAT(ChannelsOfSmallest(RunWell(options)), Each("channel{Lo..Hi}={0..1}"));
  // NCCL would refuse the program's maximum together with the rule's minimum, so the rule sets none.
  options.environment.erase("JOB_MIN_CTAS");
  options.environment["JOB_MAX_CTAS"] = "1";
  EXPECT_THAT(ChannelsOfSmallest(RunWell(options)), Each("channel{Lo..Hi}={0..0}"));
}

TEST_F(CommunicatorCtas, AreInheritedByChildrenWithoutAConfiguration) {
  const JobResult inherits = RunWell(Options(kThree, {"split"}));
  EXPECT_THAT(ChannelsOfSmallest(inherits), Each("channel{Lo..Hi}={0..2}"));
  EXPECT_THAT(inherits.AllOutput(), Not(HasSubstr("as the program asks")));
  const JobResult own = RunWell(Options(kThree, {"splitdefault"}));
  EXPECT_THAT(ChannelsOfSmallest(own), ::testing::Contains("channel{Lo..Hi}={0..0}"));
  EXPECT_THAT(ChannelsOfSmallest(own), ::testing::Contains("channel{Lo..Hi}={0..2}"));
  for (const std::string& said : own.output)
    EXPECT_THAT(LinesWith(said, "rules are not for children with a configuration of their own"), SizeIs(1));
}

TEST_F(CommunicatorCtas, AreNotSetWhereOneRankHasOtherRules) {
  JobOptions options = Options(kThree);
  options.environment_of[1] = {{"DYNAMICCL_RULES", Rules("[[communicator]]\nranks = 3\nmin_ctas = 2\n")}};
  ExpectAsAsked(RunWell(options), {"override rules: ", "on rank 1"});
}

TEST_F(CommunicatorCtas, AreNotSetWhereOneRankHasNoSuchRule) {
  JobOptions options = Options(kThree);
  options.environment_of[1] = {{"DYNAMICCL_RULES", Rules("")}};
  ExpectAsAsked(RunWell(options), {"override rules: ", "on rank 1"});
  options.environment_of[1] = {{"DYNAMICCL_MODE", "off"}};
  const JobResult off = RunWell(options);
  EXPECT_THAT(ChannelsOfSmallest(off), Each("channel{Lo..Hi}={0..0}"));
  for (const size_t rank : {0u, 2u})
    EXPECT_THAT(off.output[rank],
                HasSubstr("as the program asks: rank 1 takes no part: it runs in mode off"));
}

TEST_F(CommunicatorCtas, AreNotSetWhereTheIdsMakerHasNoSuchRule) {
  JobOptions options = Options(kThree);
  options.environment_of[0] = {{"DYNAMICCL_RULES", Rules("")}};
  const JobResult job = RunWell(options);
  EXPECT_THAT(ChannelsOfSmallest(job), Each("channel{Lo..Hi}={0..0}"));
  for (const size_t rank : {1u, 2u})
    EXPECT_THAT(job.output[rank], HasSubstr("where its unique id was made no rules are for communicators"));
}

TEST_F(CommunicatorCtas, AreNotSetWhereARankIsLateWhichIsWaitedForOnceAndAttestsAllTheSame) {
  JobOptions options = Options(kThree, {"many"});
  options.rounds = "2";
  options.environment["DYNAMICCL_ATTEST_TIMEOUT_MS"] = "5000";
  options.environment_of[1] = {{"JOB_LATE_UNTIL", "%d/output.0"}};
  const JobResult job = RunWell(options);
  EXPECT_THAT(ChannelsOfSmallest(job), Each("channel{Lo..Hi}={0..0}"));
  for (const std::string& said : job.output)
    EXPECT_THAT(LinesWith(said, "as the program asks: 2 of 3 ranks pledged in time; missing 1"), SizeIs(1));
  // On a busy machine a late rank may keep NCCL's choice for a situation.
  EXPECT_THAT(job.AllOutput(), Not(HasSubstr("keeps NCCL's choice: ")));
}

TEST_F(CommunicatorCtas, AreNotSetWhereARankIsWithoutTheObjectAndNobodyWaitsForItAgain) {
  JobOptions options = Options(kThree);
  options.environment["DYNAMICCL_ATTEST_TIMEOUT_MS"] = "1000";
  options.without_preload = {1};
  const JobResult job = RunWell(options);
  EXPECT_THAT(ChannelsOfSmallest(job), Each("channel{Lo..Hi}={0..0}"));
  for (const size_t rank : {0u, 2u}) {
    EXPECT_THAT(job.output[rank], HasSubstr("as the program asks: 2 of 3 ranks pledged in time; missing 1"));
    EXPECT_THAT(job.output[rank], HasSubstr("keeps NCCL's choice: 2 of 3 ranks pledged in time; missing 1"));
  }
}

TEST_F(CommunicatorCtas, AreNotForGroupsAndNonBlockingCommunicators) {
  ExpectAsAsked(RunWell(Options(kThree, {"grouped"})), {"it is made inside a group"});
  const JobResult non_blocking = RunWell(Options(kThree, {"nonblocking"}));
  for (const std::string& said : non_blocking.output)
    EXPECT_THAT(LinesWith(said, "as the program asks: it is non-blocking"), SizeIs(1));
}

}  // namespace
}  // namespace dynamiccl::testing
