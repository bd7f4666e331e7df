// SPDX-License-Identifier: Apache-2.0
// Tests the conclusions of a pilot from the turns of its settings, and their text.
#include <gmock/gmock.h>

#include "tests/traces/any_trace.h"
#include "tools/pilot/pilot_result.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TurnComparison Compared(double ratio, ConfidenceInterval interval) {
  return {
      .settings = {{.name = "NCCL's choice", .turns = 20, .step_ms = 10},
                   {.name = "x", .turns = 20, .step_ms = 10 * ratio, .ratio = ratio, .interval = interval}},
      .turn_steps = 3,
      .calls_of_step = 4,
      .rounds = 20};
}

PilotResult Decided(double ratio, ConfidenceInterval interval) {
  PilotResult result;
  result.ours = "policy p.dcpolicy";
  result.starts = 3;
  result.decided = Compared(ratio, interval);
  return result;
}

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

TEST(PilotVerdict, IsOfTheWholeInterval) {
  EXPECT_EQ(Decided(0.8, {0.78, 0.82}).Verdict(), PilotVerdict::kFaster);
  EXPECT_EQ(Decided(1.2, {1.1, 1.3}).Verdict(), PilotVerdict::kSlower);
  EXPECT_EQ(Decided(0.9, {0.8, 1.01}).Verdict(), PilotVerdict::kNoDifference);
}

TEST(PilotVerdict, IsVoidWhereNothingCouldBeCompared) {
  const PilotResult few_rounds = Decided(0.8, {0, kUnbounded});
  EXPECT_EQ(few_rounds.Verdict(), PilotVerdict::kVoid);
  EXPECT_THAT(Describe(few_rounds), HasSubstr("fewer than six rounds"));
  PilotResult no_step;
  no_step.why_not = "no training step repeats in the recorded calls";
  EXPECT_EQ(no_step.Verdict(), PilotVerdict::kVoid);
  EXPECT_THAT(Describe(no_step), HasSubstr("Nothing can be said: no training step repeats"));
  EXPECT_EQ(PilotResult{}.Verdict(), PilotVerdict::kVoid);
  PilotResult short_search;
  short_search.searched = {Compared(1.01, {0, kUnbounded})};
  short_search.searched[0].rounds = 5;
  EXPECT_EQ(short_search.Verdict(), PilotVerdict::kVoid);
}

TEST(PilotVerdict, IsNothingToWinWhereTheSearchFoundNothing) {
  PilotResult result;
  result.searched = {Compared(1.01, {0.9, 1.1}), Compared(1.02, {0.9, 1.1})};
  EXPECT_EQ(result.Verdict(), PilotVerdict::kNothing);
  EXPECT_THAT(Describe(result), HasSubstr("None of 2 configs was faster"));
}

// The job took 10 s, and its calls span 4 s of them.
TEST(PilotResult, SaysThatAShortJobIsMostlyStartUp) {
  PilotResult result = Decided(0.8, {0.78, 0.82});
  result.observed.outcome.wall_ns = 10'000'000'000;
  result.calls_ns = 4'000'000'000;
  EXPECT_THAT(Describe(result), HasSubstr("took 10.0 s, 6.0 s of it before its first call"));
  EXPECT_EQ(ToJson(result)["calls_ns"], 4'000'000'000);
  result.calls_ns = 6'000'000'000;
  EXPECT_THAT(Describe(result), Not(HasSubstr("start-up")));
  result.calls_ns = 0;
  EXPECT_THAT(Describe(result), Not(HasSubstr("start-up")));
}

TEST(PilotResult, SaysInJsonAndInThePageWhatItFound) {
  PilotResult result = Decided(0.8, {0.78, 0.82});
  result.command = "./job <input>";
  result.rules = "pilot/best.toml";
  result.searched = {Compared(0.7, {0.6, 0.9})};
  result.notes = {"1 of 2 starts of the search did not fit the budget"};
  const Json json = ToJson(result);
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_EQ(json["searched"].size(), 1u);
  EXPECT_DOUBLE_EQ(json["decided"]["settings"][1]["ratio"].get<double>(), 0.8);
  const std::string page = RenderPilot(result, {"observed.ctrace", {{SectionBuilder(0, 2).section()}}});
  EXPECT_THAT(page, HasSubstr("0.780 to 0.820"));
  EXPECT_THAT(page, HasSubstr("./job &lt;input&gt;"));
  EXPECT_THAT(page, HasSubstr("did not fit the budget"));
  EXPECT_THAT(Describe(result), HasSubstr("dynamiccl run --rules pilot/best.toml"));
}

}  // namespace
}  // namespace dynamiccl
