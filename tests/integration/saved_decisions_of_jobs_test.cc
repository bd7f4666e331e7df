// SPDX-License-Identifier: Apache-2.0
// Tests that the choices of one run can be saved and used by another run.
#include "src/decision/saved_decisions.h"
#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

using ::testing::HasSubstr;

class SavedDecisionsOfJobs : public JobTest {
 protected:
  SavedDecisionsOfJobs() : policy_(PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple)) {}

  JobResult RunWith(const Environment& more) {
    return Run({.n_ranks = 3,
                .extras = {"split"},
                .environment = With(
                    {{"DYNAMICCL_DECISIONS", Path()}, {"DYNAMICCL_DECISION_LOG", "%d/decisions.%r"}}, more)});
  }
  // Returns decisions without the ids of communicators, which differ from run to run.
  static std::vector<std::string> Decisions(const JobResult& job, const std::string& log) {
    std::vector<std::string> decisions = LinesWith(job.Text(log), " ");
    for (std::string& line : decisions) line.erase(0, line.find(' '));
    return decisions;
  }
  std::string Path() const { return folder_ + "/saved.decisions"; }

  const std::string policy_;
};

TEST_F(SavedDecisionsOfJobs, AnotherRunMakesTheSameChoices) {
  const JobResult first = RunWith({{"DYNAMICCL_POLICY", policy_}, {"DYNAMICCL_REPRODUCIBLE", "1"}});
  ASSERT_TRUE(first.ok()) << first.AllOutput();
  const auto saved = SavedDecisions::ReadFile(Path());
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_FALSE(saved->configs().empty());
  EXPECT_FALSE(LinesWith(first.Text("decisions.0"), "Ring/Simple/").empty());
  for (const char* reproducible : {"0", "1"}) {
    const JobResult again =
        RunWith({{"DYNAMICCL_POLICY", policy_}, {"DYNAMICCL_REPRODUCIBLE", reproducible}});
    ASSERT_TRUE(again.ok()) << again.AllOutput();
    for (const char* rank : {"decisions.0", "decisions.1", "decisions.2"})
      EXPECT_EQ(Decisions(again, rank), Decisions(first, rank)) << rank;
  }
  EXPECT_EQ(SavedDecisions::ReadFile(Path())->Text(), saved->Text());
}

TEST_F(SavedDecisionsOfJobs, WhatIsInTheFileIsObeyedWithoutAPolicy) {
  SavedDecisions decisions;
  for (uint64_t bytes = 1; bytes < 1 << 24; bytes += 1 + bytes / 8)
    decisions.Set({3, 1, {Collective::kAllReduce, SizeClassOf(bytes), Role::kUnknown}},
                  {Algorithm::kTree, Protocol::kSimple, 2});
  File("saved.decisions", decisions.Text());
  const JobResult job = RunWith({});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_FALSE(LinesWith(job.Text("decisions.0"), "Tree/Simple/2 policy v1").empty())
      << job.Text("decisions.0") << job.AllOutput();
  EXPECT_TRUE(LinesWith(job.Text("decisions.0"), "AllGather").size() > 0);
  EXPECT_TRUE(LinesWith(LinesWith(job.Text("decisions.0"), "AllGather")[0], "policy").empty());
}

TEST_F(SavedDecisionsOfJobs, AFileThatIsWrongLeavesNcclsChoiceAndSaysSo) {
  SavedDecisions other(std::string(64, '0'));
  struct Case {
    std::string text;
    std::string said;
  };
  for (const Case& wrong :
       {Case{other.Text(), "was made with policy 0000"}, Case{"rubbish\n", "saved.decisions:1: is not"},
        Case{other.Text().substr(0, 40), "end line is missing"}}) {
    File("saved.decisions", wrong.text);
    const JobResult job = RunWith({{"DYNAMICCL_POLICY", policy_}});
    EXPECT_TRUE(job.ok()) << job.AllOutput();
    EXPECT_THAT(job.output[0], HasSubstr(wrong.said));
    EXPECT_TRUE(LinesWith(job.Text("decisions.0"), "Ring/Simple/").empty());
  }
}

TEST_F(SavedDecisionsOfJobs, AFileThatIsMissingIsSaidUnlessItIsToBeWritten) {
  const JobResult job = RunWith({{"DYNAMICCL_POLICY", policy_}});
  EXPECT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.output[0], HasSubstr("saved.decisions: cannot be read"));
  EXPECT_TRUE(LinesWith(job.Text("decisions.0"), "Ring/Simple/").empty());
}

TEST_F(SavedDecisionsOfJobs, AdaptiveBecomesFrozen) {
  const JobResult job = RunWith(
      {{"DYNAMICCL_POLICY", policy_}, {"DYNAMICCL_REPRODUCIBLE", "1"}, {"DYNAMICCL_MODE", "adaptive"}});
  ASSERT_TRUE(job.ok()) << job.AllOutput();
  EXPECT_THAT(job.output[0], HasSubstr("adaptive is frozen here"));
  EXPECT_FALSE(LinesWith(job.Text("decisions.0"), "Ring/Simple/").empty());
}

}  // namespace
}  // namespace dynamiccl::testing
