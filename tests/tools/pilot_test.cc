// SPDX-License-Identifier: Apache-2.0
// What a pilot concludes from its rounds, and how it tells how fast a run went.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/traces/any_trace.h"
#include "tools/pilot/pilot_result.h"
#include "tools/report/run_timeline.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

PilotResult Rounds(std::vector<PilotRound> rounds) {
  PilotResult result;
  result.ours = "policy p.dcpolicy";
  result.rounds = std::move(rounds);
  return result;
}

TEST(PilotVerdict, FasterSlowerAndEqual) {
  EXPECT_EQ(Rounds({{100, 80, 100.2}, {100.1, 81, 100}, {100, 80.5, 100.1}}).Verdict(),
            PilotVerdict::kFaster);
  EXPECT_EQ(Rounds({{100, 120, 100.2}, {100.1, 121, 100}, {100, 119, 100.1}}).Verdict(),
            PilotVerdict::kSlower);
  EXPECT_EQ(Rounds({{100, 99.9, 100.2}, {100.1, 100.3, 100}, {100, 100, 100.1}}).Verdict(),
            PilotVerdict::kEqual);
}

TEST(PilotVerdict, IsVoidWhereDefaultDiffersFromDefault) {
  const PilotResult noisy = Rounds({{100, 80, 103}, {100, 80, 103}, {100, 80, 103}});
  EXPECT_EQ(noisy.Verdict(), PilotVerdict::kVoid);
  EXPECT_NEAR(noisy.Noise(), 0.029, 0.001);
  EXPECT_THAT(Describe(noisy), HasSubstr("Nothing can be said"));
  EXPECT_EQ(Rounds({}).Verdict(), PilotVerdict::kVoid);
}

TEST(PilotResult, SaysInJsonAndInThePageWhatItFound) {
  PilotResult result = Rounds({{100, 80, 100}, {100, 80, 100}, {100, 80, 100}});
  result.command = "./job <input>";
  result.headroom_missing = "left out";
  const Json json = ToJson(result);
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_EQ(json["rounds_ms"].size(), 3u);
  const std::string page = RenderPilot(result, {"observed.ctrace", {{SectionBuilder(0, 2).section()}}});
  EXPECT_THAT(page, HasSubstr("-20.0 %"));
  EXPECT_THAT(page, HasSubstr("./job &lt;input&gt;"));
  EXPECT_THAT(page, HasSubstr("left out"));
}

TEST(PilotResult, RulesThatMakeTheJobSlowerArePutAside) {
  const std::string folder = ::testing::TempDir() + "pilot_rules." + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string rules = folder + "/best.csv", aside = folder + "/slower.csv";
  std::ofstream(rules) << "allreduce,0,1024,ring,ll,1,-1,-1\n";

  PilotResult faster = Rounds({{100, 80, 100}, {100, 80, 100}, {100, 80, 100}});
  ASSERT_TRUE(PutAsideSlowerRules(rules, aside, faster));
  EXPECT_TRUE(std::filesystem::exists(rules));

  PilotResult slower = Rounds({{100, 120, 100}, {100, 120, 100}, {100, 120, 100}});
  ASSERT_TRUE(PutAsideSlowerRules(rules, aside, slower));
  EXPECT_FALSE(std::filesystem::exists(rules));
  EXPECT_TRUE(std::filesystem::exists(aside));
  EXPECT_THAT(Describe(slower), HasSubstr("not in the job"));
  EXPECT_EQ(ToJson(slower)["put_aside"], aside);
  EXPECT_FALSE(PutAsideSlowerRules(rules, aside, slower)) << "the file is gone";
}

// Records of the builder are a nanosecond apart.
TEST(StepPace, IsOfMarkedStepsAfterTheFirstTwo) {
  SectionBuilder builder(0, 2);
  for (uint64_t step = 0; step < 6; ++step) {
    builder.Add(StepRecord({.step = step, .phase = Phase::kForward}));
    builder.Call(step, Collective::kAllReduce, 64);
    builder.Add(StepRecord({.step = step, .phase = Phase::kBackward}));
  }
  const auto pace = PaceOf({{builder.section()}});
  ASSERT_TRUE(pace);
  EXPECT_TRUE(pace->marked);
  EXPECT_DOUBLE_EQ(pace->milliseconds, 3e-6);
}

TEST(StepPace, IsOfTheRunWithoutMarks) {
  SectionBuilder builder(0, 2);
  builder.Call(0, Collective::kAllReduce, 64)
      .Call(1, Collective::kAllReduce, 64)
      .Call(2, Collective::kAllReduce, 64);
  const auto pace = PaceOf({{builder.section()}});
  ASSERT_TRUE(pace);
  EXPECT_FALSE(pace->marked);
  EXPECT_DOUBLE_EQ(pace->milliseconds, 2e-6);
  EXPECT_FALSE(PaceOf({{SectionBuilder(0, 2).section()}}));
  EXPECT_FALSE(PaceOf({}));
}

}  // namespace
}  // namespace dynamiccl
