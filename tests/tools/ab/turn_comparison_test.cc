// SPDX-License-Identifier: Apache-2.0
// Tests the results computed from jobs whose settings took turns, and the parser of settings as users write
// them.
#include "tools/ab/turn_comparison.h"

#include <gmock/gmock.h>

#include <random>
#include <string>
#include <utility>

#include "src/decision/override_rules.h"
#include "src/decision/rule_turns.h"
#include "tools/ab/job_in_turns.h"
#include "tools/ab/rule_settings.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kTurnSteps = 3;
constexpr size_t kCallsOfStep = 4;

// A job with one setting per entry of `step_ms`, which is the setting's step time.
struct Job {
  std::vector<double> step_ms;
  double noise = 0.01;
  SectionCalls calls;

  explicit Job(std::vector<double> times, uint64_t seed = 3) : step_ms(std::move(times)), random_(seed) {
    calls.communicators[1] = {};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < step_ms.size(); ++i) all.push_back("setting " + std::to_string(i));
    return all;
  }
  // Runs `before` steps before the first turn, then `turns` turns.
  void Run(int before, uint32_t turns) {
    for (int i = 0; i < before; ++i) Step(0, step_ms[0]);
    for (uint32_t i = 0; i < turns; ++i) Turn();
  }
  void Turn() {
    const size_t set = SetOfTurn(++turn_, step_ms.size());
    for (uint32_t step = 0; step < kTurnSteps; ++step)
      Step(turn_, step == 0 ? 3 * step_ms[set] : step_ms[set]);
  }
  void Step(uint32_t turn, double ms) {
    std::normal_distribution<double> normal(0, noise);
    const double took = ms * std::exp(normal(random_));
    for (size_t i = 0; i < kCallsOfStep; ++i) {
      TraceCall call;
      call.communicator = 1;
      call.issued.issued_ns =
          static_cast<int64_t>((now_ms_ + took * static_cast<double>(i) / kCallsOfStep) * 1e6);
      call.issued.call.call_number = number_++;
      call.issued.call.bytes = 1024 * (i + 1);
      call.decision = DecisionView{0, {}, DecidedBy::kRule, static_cast<uint8_t>(1 + turn)};
      calls.calls.push_back(call);
    }
    now_ms_ += took;
  }

 private:
  std::mt19937_64 random_;
  uint32_t turn_ = 0;
  uint64_t number_ = 0;
  double now_ms_ = 5;
};

// Here the first step of a turn takes three times as long. The comparison leaves it out.
TEST(CompareTurns, SaysWhatASettingDoesToSteps) {
  Job job({20, 14, 20, 26});
  job.Run(10, 4 * 100 + 1);  // These are over 256 turns, and a trace keeps only the low bits of a version.
  const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
  ASSERT_TRUE(compared) << compared.error().message;
  EXPECT_EQ(compared->calls_of_step, kCallsOfStep);
  EXPECT_EQ(compared->rounds, 100u);
  EXPECT_EQ(compared->left_out, 0u);
  ASSERT_EQ(compared->settings.size(), 4u);
  EXPECT_NEAR(compared->settings[0].step_ms, 20, 0.2);
  EXPECT_NEAR(compared->settings[1].ratio, 0.7, 0.004);
  EXPECT_NEAR(compared->settings[3].ratio, 1.3, 0.006);
  for (const size_t i : {1u, 3u}) {
    const SettingTimes& setting = compared->settings[i];
    EXPECT_LT(setting.interval.low, setting.ratio);
    EXPECT_GT(setting.interval.high, setting.ratio);
    EXPECT_LT(setting.interval.high - setting.interval.low, 0.01);
  }
  EXPECT_LE(compared->settings[2].interval.low, 1.003);
  EXPECT_GE(compared->settings[2].interval.high, 0.997);
  EXPECT_NEAR(compared->noise, 0.01 / std::sqrt(2.0), 0.002) << "of a mean of two steps";
  EXPECT_THAT(Describe(*compared), HasSubstr("setting 1: faster"));
  EXPECT_THAT(Describe(*compared), HasSubstr("setting 3: slower"));
}

// An interval must contain the true ratio in 95 of 100 jobs.
TEST(CompareTurns, IntervalsAreHonest) {
  int outside = 0;
  constexpr int kJobs = 300;
  for (int i = 0; i < kJobs; ++i) {
    Job job({20, 20});
    job.noise = 0.05;
    // This consumes another part of the random numbers.
    for (int skipped = 0; skipped < i; ++skipped) job.Run(1, 0);
    job.calls.calls.clear();
    job.Run(1, 2 * 20 + 1);
    const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
    ASSERT_TRUE(compared);
    const ConfidenceInterval& interval = compared->settings[1].interval;
    outside += interval.low > 1 || interval.high < 1 ? 1 : 0;
  }
  EXPECT_LE(outside, 30);
}

// Counts the jobs of `steps` steps whose interval says "faster" or "slower". Steps of the second setting take
// `ratio` times as long as those of the first, and step times vary by 2 %.
int JobsToldApart(int jobs, int steps, double ratio) {
  constexpr int kBefore = 33;  // There are 128 calls before the turns begin.
  const auto turns = static_cast<uint32_t>((steps - kBefore) / static_cast<int>(kTurnSteps));
  int told = 0;
  for (int i = 0; i < jobs; ++i) {
    Job job({20, 20 * ratio}, static_cast<uint64_t>(i));
    job.noise = 0.02;
    job.Run(kBefore, turns);
    const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
    if (!compared) continue;
    const ConfidenceInterval& interval = compared->settings[1].interval;
    told += interval.low > 1 || interval.high < 1 ? 1 : 0;
  }
  return told;
}

// With a true power of 0.95, fewer than 180 of 200 jobs see the difference only about once in several
// thousand runs of this test.
TEST(CompareTurns, TellsSmallDifferencesApart) {
  constexpr int kJobs = 200;
  for (const auto& [steps, ratio] : {std::pair{400, 0.99}, std::pair{1600, 0.995}}) {
    const int told = JobsToldApart(kJobs, steps, ratio);
    RecordProperty("of_200_jobs_of_" + std::to_string(steps) + "_steps", told);
    EXPECT_GE(told, 0.9 * kJobs) << steps << " steps";
    EXPECT_LE(JobsToldApart(kJobs, steps, 1), 0.1 * kJobs) << steps << " steps";
  }
}

TEST(CompareTurns, TurnsWithOtherCallsAreLeftOut) {
  Job job({20, 14});
  job.Run(10, 21);
  job.Step(22, 500);  // This is an evaluation within a turn.
  job.Run(0, 20);
  const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
  ASSERT_TRUE(compared);
  EXPECT_GE(compared->left_out, 1u);
  EXPECT_NEAR(compared->settings[1].ratio, 0.7, 0.01);
}

TEST(CompareTurns, FewRoundsSayNothingSure) {
  Job job({20, 14});
  job.Run(10, 7);
  const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->rounds, 3u);
  EXPECT_LT(compared->MoreSteps(), 0);
  EXPECT_THAT(Describe(*compared), HasSubstr("not known"));
  EXPECT_TRUE(ToJson(*compared)["settings"][1]["low"].is_null());
}

TEST(CompareTurns, SaysHowManyStepsMore) {
  Job job({20, 20});
  job.noise = 0.05;
  job.Run(10, 101);
  const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
  ASSERT_TRUE(compared);
  const auto& interval = compared->settings[1].interval;
  const double half = std::log(interval.high / interval.low) / 2;
  EXPECT_NEAR(compared->MoreSteps(), 300 * (half * half / (0.005 * 0.005) - 1), 1);
}

// The program issues 50 steps ahead and then waits for all of them. The host therefore does not see the
// length of a step.
TEST(CompareTurns, SaysWhereTheHostDoesNotSeeTheSteps) {
  Job job({20, 20});
  job.Run(10, 40);
  EXPECT_TRUE(CompareTurns({job.calls}, job.names(), kTurnSteps)->SeesSteps());
  for (TraceCall& call : job.calls.calls)
    call.issued.issued_ns =
        call.issued.issued_ns / 1000 + int64_t(call.issued.call.call_number / 200) * 1'000'000'000;
  const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
  ASSERT_TRUE(compared);
  EXPECT_FALSE(compared->SeesSteps());
  EXPECT_THAT(Describe(*compared), HasSubstr("issues them without waiting"));
}

// One job starts twice, on machines of different speed. Each ratio compares turns of the same start.
TEST(CompareTurns, PoolsTheRoundsOfSeveralStarts) {
  Job slow({20, 18}), fast({10, 9});
  slow.Run(10, 7);
  fast.Run(10, 9);
  const auto compared = CompareTurns({slow.calls, fast.calls}, slow.names(), kTurnSteps);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->rounds, 7u);
  EXPECT_NEAR(compared->settings[1].ratio, 0.9, 0.01);
  EXPECT_LT(compared->settings[1].interval.high, 0.93);
  EXPECT_EQ(CompareTurns({SectionCalls{}, fast.calls}, fast.names(), kTurnSteps)->rounds, 4u);
}

TEST(CompareTurns, AJobWithoutTurnsIsAnError) {
  Job job({20, 14});
  job.Run(30, 0);
  const auto compared = CompareTurns({job.calls}, job.names(), kTurnSteps);
  ASSERT_FALSE(compared);
  EXPECT_THAT(compared.error().message, HasSubstr("no setting had a whole turn"));
  EXPECT_FALSE(CompareTurns({SectionCalls{}}, job.names(), kTurnSteps));
}

// Turns begin once the calls were seen to repeat. For a step of four calls that is after about 35 steps.
TEST(TurnsOfStart, AreThoseThatTheJobWillHave) {
  Job job({20});
  job.Run(100, 0);
  const size_t turns = TurnsOfStart(job.calls, kTurnSteps);
  EXPECT_GE(turns, 18u);
  EXPECT_LE(turns, 25u);
  job.Run(30, 0);
  EXPECT_EQ(TurnsOfStart(job.calls, kTurnSteps), turns + 10);
}

TEST(TurnsOfStart, AreNoneWithoutStepsThatRepeat) {
  Job short_job({20});
  short_job.Run(10, 0);
  EXPECT_EQ(TurnsOfStart(short_job.calls, kTurnSteps), 0u);
  Job no_steps({20});
  no_steps.Run(100, 0);
  for (size_t i = 0; i < no_steps.calls.calls.size(); ++i) no_steps.calls.calls[i].issued.call.bytes = i * i;
  EXPECT_EQ(TurnsOfStart(no_steps.calls, kTurnSteps), 0u);
  EXPECT_EQ(TurnsOfStart({}, kTurnSteps), 0u);
}

std::vector<OverrideRule> RulesFor(const std::string& setting) {
  const auto text = RulesOfSetting(setting);
  EXPECT_TRUE(text) << setting;
  const auto rules = OverrideRules::Parse(*text, "s.toml");
  EXPECT_TRUE(rules) << rules.error().message;
  return rules ? rules->rules() : std::vector<OverrideRule>{};
}

TEST(RulesOfSetting, AConfigStandsForAllCollectivesThatHaveIt) {
  EXPECT_EQ(RulesFor("ring/simple/1").size(), 5u);
  EXPECT_EQ(RulesFor("nccl").size(), 5u);
  const auto trees = RulesFor("Tree/LL");
  ASSERT_EQ(trees.size(), 1u);
  EXPECT_EQ(trees[0].collective, Collective::kAllReduce);
  EXPECT_EQ(trees[0].min_bytes, 1024u);
}

TEST(RulesOfSetting, CollectivesCanHaveTheirOwn) {
  const auto rules = RulesFor("allgather=ring/simple/1,reduce_scatter=pat/simple/2,allreduce=nccl");
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[1].collective, Collective::kReduceScatter);
  EXPECT_EQ(rules[1].config.channels, 2);
  EXPECT_TRUE(rules[2].config.leaves_nccl_alone());
}

TEST(RulesOfSetting, ChannelsOfCommunicatorsCanBeBounded) {
  const auto both =
      OverrideRules::Parse(RulesOfSetting("ring/simple,min_ctas=16,max_ctas=32").value(), "s.toml");
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->rules().size(), 5u);
  const CommunicatorRule* const rule = both->MatchCommunicator(8, 1);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->ctas.least, 16);
  EXPECT_EQ(rule->ctas.most, 32);
  EXPECT_TRUE(RulesFor("min_ctas=16").empty());
  EXPECT_TRUE(BoundsChannels("ring/simple,max_ctas=4"));
  EXPECT_FALSE(BoundsChannels("ring/simple/4"));
  EXPECT_TRUE(ChoosesConfigs("ring/simple,max_ctas=4"));
  EXPECT_FALSE(ChoosesConfigs("max_ctas=4"));
}

TEST(RulesOfSetting, WhatMakesNoSenseIsAnError) {
  for (const char* setting :
       {"min_ctas=", "min_ctas=0", "min_ctas=65", "min_ctas=8,max_ctas=4", "min_ctas=2,min_ctas=2",
        "allgather=min_ctas=3", "ring/ll,tree/ll", "ring/ll,allgather=ring/simple",
        "allgather=ring/simple,ring/ll", "ctas=3", "", "ring", "ring/simple/1/2", "allgather=tree/ll",
        "gather=ring/ll", "allgather=", ",allgather=ring/ll", "sendrecv=ring/ll", "allgather=ring/ll;x"})
    EXPECT_FALSE(RulesOfSetting(setting)) << setting;
}

}  // namespace
}  // namespace dynamiccl
