// SPDX-License-Identifier: Apache-2.0
#include "src/decision/override_rules.h"

#include <gmock/gmock.h>

#include <random>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

// This is NVIDIA's example file (plugins/tuner/example), shortened.
constexpr const char* kExample =
    R"(# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
allreduce,0,65536,tree,ll,2,1,8,-1,-1
allreduce,65537,4294967295,ring,simple,-1,-1,-1
broadcast,0,32768,ring,ll128,4,-1,-1,1

reducescatter , 0 , 18446744073709551615 , pat , simple , 1 , -1 , 4
)";

constexpr const char* kWithPhases =
    R"(allgather,0,1048576,ring,simple,2,-1,-1,-1,-1,backward,3
allgather,0,1048576,ring,ll,-1,-1,-1,-1,-1,forward
allgather,0,1048576,ring,ll128,-1,-1,-1,-1,-1,-1,-1,post_step_gather
)";

std::string ErrorOf(const std::string& text) {
  const auto rules = OverrideRules::Parse(text, "r.csv");
  return rules ? "no error" : rules.error().message;
}

TEST(OverrideRules, ReadsTheFormatOfNcclsExample) {
  const auto rules = OverrideRules::Parse(kExample, "r.csv");
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->rules().size(), 4u);
  const OverrideRule& last = rules->rules()[3];
  EXPECT_EQ(last.line, 6);
  EXPECT_EQ(last.collective, Collective::kReduceScatter);
  EXPECT_EQ(last.max_bytes, UINT64_MAX);
  EXPECT_EQ(last.config, (CollectiveConfig{Algorithm::kPat, Protocol::kSimple, 1}));
  EXPECT_EQ(rules->rules()[1].config.channels, 0);
}

TEST(OverrideRules, FirstRuleThatMatchesWins) {
  const auto rules = OverrideRules::Parse(kExample, "r.csv");
  const RuleSubject small{Collective::kAllReduce, 65536, 1, 8, 1};
  EXPECT_EQ(rules->Match(small)->config.algorithm, Algorithm::kTree);
  EXPECT_EQ(rules->Match({Collective::kAllReduce, 65537, 1, 8, 1})->config.algorithm, Algorithm::kRing);
  // With another number of ranks the first rule does not match, and the second starts at a larger size.
  EXPECT_EQ(rules->Match({Collective::kAllReduce, 65536, 1, 4, 1}), nullptr);
  EXPECT_EQ(rules->Match({Collective::kBroadcast, 10, 1, 8, 2}), nullptr);
  EXPECT_EQ(rules->Match({Collective::kAllGather, 10, 1, 8, 1}), nullptr);
}

TEST(OverrideRules, BadLineIsAnErrorWithLineAndColumn) {
  EXPECT_THAT(ErrorOf("allreduce,0,1,ring,simple,1,-1,-1\nallreduce,0,1,ring\n"),
              HasSubstr("r.csv:2: column 4: 4 columns"));
  EXPECT_THAT(ErrorOf("alltoall,0,1,ring,simple,1,-1,-1"), HasSubstr("r.csv:1: column 1: 'alltoall'"));
  EXPECT_THAT(ErrorOf("send,0,1,ring,simple,1,-1,-1"), HasSubstr("column 1"));
  EXPECT_THAT(ErrorOf("allreduce,x,1,ring,simple,1,-1,-1"), HasSubstr("column 2: 'x'"));
  EXPECT_THAT(ErrorOf("allreduce,5,4,ring,simple,1,-1,-1"), HasSubstr("column 3: '4' is smaller"));
  EXPECT_THAT(ErrorOf("allreduce,0,1,rings,simple,1,-1,-1"), HasSubstr("column 4: 'rings'"));
  EXPECT_THAT(ErrorOf("allreduce,0,1,ring,simplex,1,-1,-1"), HasSubstr("column 5: 'simplex'"));
  EXPECT_THAT(ErrorOf("allreduce,0,1,ring,simple,0,-1,-1"), HasSubstr("column 6: '0'"));
  EXPECT_THAT(ErrorOf("allreduce,0,1,ring,simple,65,-1,-1"), HasSubstr("column 6: '65'"));
  EXPECT_THAT(ErrorOf("allreduce,0,1,ring,simple,1,-2,-1"), HasSubstr("column 7: '-2'"));
  EXPECT_THAT(ErrorOf("allreduce,0,1,ring,simple,1,-1,8 8"), HasSubstr("column 8: '8 8'"));
  EXPECT_THAT(ErrorOf("allreduce,0,99999999999999999999,ring,simple,1,-1,-1"), HasSubstr("column 3"));
}

TEST(OverrideRules, BufferRegistrationCannotBeACondition) {
  EXPECT_THAT(ErrorOf("allreduce,0,1,ring,simple,1,-1,-1,-1,1"),
              HasSubstr("column 10: '1' regBuff differs between ranks"));
  EXPECT_EQ(ErrorOf("allreduce,0,1,ring,simple,1,-1,-1,-1,-1"), "no error");
}

TEST(OverrideRules, PhaseStageAndRoleAreColumnsOfTheirOwn) {
  const auto rules = OverrideRules::Parse(kWithPhases, "r.csv");
  ASSERT_TRUE(rules) << rules.error().message;
  RuleSubject subject{Collective::kAllGather, 4096, 1, 8, 1};
  EXPECT_EQ(rules->Match(subject), nullptr) << "nothing is recognised";
  subject.phase = Phase::kBackward;
  EXPECT_EQ(rules->Match(subject), nullptr);
  subject.stage = ZeroStage::kStage3;
  EXPECT_EQ(rules->Match(subject), &rules->rules()[0]);
  subject.phase = Phase::kForward;
  EXPECT_EQ(rules->Match(subject), &rules->rules()[1]);
  subject.phase = Phase::kOptimizer;
  subject.role = Role::kPostStepGather;
  EXPECT_EQ(rules->Match(subject), &rules->rules()[2]);
}

TEST(OverrideRules, WrongPhaseStageOrRoleIsAnErrorWithItsColumn) {
  const std::string rule = "allreduce,0,1,ring,simple,1,-1,-1,-1,-1,";
  for (const char* good : {"-1", "unknown,unknown,unknown", "other,0", "-1,-1,backward_gather"})
    EXPECT_EQ(ErrorOf(rule + good), "no error") << good;
  EXPECT_THAT(ErrorOf(rule), HasSubstr("r.csv:1: column 11: '' is not -1 or one of unknown, forward"));
  EXPECT_THAT(ErrorOf(rule + "Backward"), HasSubstr("column 11: 'Backward'"));
  EXPECT_THAT(ErrorOf(rule + "-1,4"), HasSubstr("column 12: '4' is not -1 or one of 0, 1, 2, 3"));
  EXPECT_THAT(ErrorOf(rule + "-1,-1,gather"), HasSubstr("column 13: 'gather' is not -1 or one of unknown, "));
  EXPECT_THAT(ErrorOf(rule + "-1,-1,-1,-1,-1"), HasSubstr("15 columns, a rule has 8 to 14"));
}

TEST(OverrideRules, MemoryPressureIsAColumn) {
  const std::string rule = "allreduce,0,1,ring,simple,1,-1,-1,-1,-1,-1,-1,-1,";
  const auto rules = OverrideRules::Parse(rule + "high", "r.csv");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_TRUE(rules->any_needs_memory());
  EXPECT_FALSE(rules->any_needs_recognition());
  RuleSubject subject{Collective::kAllReduce, 1, 1, 8, 1};
  EXPECT_EQ(rules->Match(subject), nullptr) << "no level is agreed";
  subject.memory = MemoryPressure::kHigh;
  EXPECT_EQ(rules->Match(subject), &rules->rules()[0]);
  EXPECT_FALSE(OverrideRules::Parse(rule + "unknown", "r.csv")->any_needs_memory());
  EXPECT_THAT(ErrorOf(rule + "full"), HasSubstr("column 14: 'full' is not -1 or one of low, medium, high"));
}

TEST(OverrideRules, DamagedTextIsRefusedOrReadButNeverCrashes) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? kExample : kWithPhases;
    for (int i = 0; i < 1 + round % 5; ++i) text[random() % text.size()] = static_cast<char>(random());
    const auto rules = OverrideRules::Parse(text.substr(0, random() % text.size()), "r.csv");
    EXPECT_TRUE(rules || rules.error().message.find("r.csv:") == 0);
  }
}

TEST(OverrideRules, DigestIsThatOfTheText) {
  EXPECT_EQ(OverrideRules::Parse(kExample, "a")->digest(), OverrideRules::Parse(kExample, "b")->digest());
  EXPECT_NE(OverrideRules::Parse(kExample, "a")->digest(), OverrideRules::Parse("# none", "a")->digest());
}

TEST(OverrideRules, MissingFileIsAnErrorWithItsName) {
  const auto rules = OverrideRules::ReadFile("/nowhere/rules.csv");
  ASSERT_FALSE(rules);
  EXPECT_THAT(rules.error().message, HasSubstr("/nowhere/rules.csv"));
  EXPECT_FALSE(OverrideRules::ReadFile("/"));
}

}  // namespace
}  // namespace dynamiccl
