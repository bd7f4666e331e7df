// SPDX-License-Identifier: Apache-2.0
// Tests how calls are divided into steps, and what the steps show.
#include "src/decision/guard/step_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "src/decision/guard/step_period.h"

namespace dynamiccl {
namespace {

constexpr CollectiveConfig kRing{Algorithm::kRing, Protocol::kSimple, 1};
constexpr TableKey kGather{Collective::kAllGather, {60}, Role::kParameterGather};
constexpr TableKey kReduce{Collective::kReduceScatter, {64}, Role::kGradientReduce};

// A program with steps of three calls: two gathers and a reduction. Other calls of the communicator lie
// between them.
class Program {
 public:
  Program() { experiment.Begin({1000, 5}); }
  // Makes one step of `step_ns`.
  void Step(const CollectiveConfig& gather, const CollectiveConfig& reduce, int64_t step_ns) {
    Call(kGather, gather, 0);
    Call(kGather, gather, 2);
    Call(kReduce, reduce, 4);
    Pass(step_ns);
  }
  // Passes the time of a step after its calls were made.
  void Pass(int64_t step_ns) {
    call_ += 5;
    now_ns_ += step_ns;
  }
  void Call(const TableKey& key, const CollectiveConfig& config, uint64_t place) {
    GuardedCall call{key, config.leaves_nccl_alone() ? CallUse::kChoice : CallUse::kTrial, config, 1,
                     now_ns_ + static_cast<int64_t>(place)};
    call.number = call_ + place;
    call.captured = captured;
    if (device_tells) call.begun_ns = device_stands ? 1000 : now_ns_ + 77;
    if (ahead_ns > 0) call.at_ns = static_cast<int64_t>(call.number) * 1000 + now_ns_ / ahead_ns * ahead_ns;
    experiment.Take(call, takes_part);
  }
  SeenConfig Seen() const { return experiment.Seen(KeyCode(kGather), kRing, kLeaveNcclAlone); }
  StepExperiment experiment;
  bool captured = false;
  bool takes_part = true;      // Whether the keys take part in the experiment.
  bool device_tells = false;   // Whether the device tells when calls began.
  bool device_stands = false;  // Whether the device's clock stands still.
  // The host issues the calls of this many nanoseconds at once and then waits for the device. If it is 0, the
  // host does not run ahead.
  int64_t ahead_ns = 0;

 private:
  uint64_t call_ = 1000;
  int64_t now_ns_ = 0;
};

// Runs steps of which one in four uses the ring for the gathers and takes 30 % less.
void RunSteps(Program& program, int steps, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < steps; ++i) {
    const bool ring = random() % 4 == 0;
    const auto noise = static_cast<int64_t>(random() % 400'000);
    program.Step(ring ? kRing : kLeaveNcclAlone, kLeaveNcclAlone, (ring ? 7'000'000 : 10'000'000) + noise);
  }
}

TEST(StepExperiment, SeesWhatAConfigDoesToSteps) {
  Program program;
  RunSteps(program, 200);
  EXPECT_NEAR(program.Seen().effect.mean, std::log(0.7), 0.02);
  EXPECT_GT(program.Seen().steps, 30u);
  EXPECT_GE(program.experiment.blocks(), 11u);
  EXPECT_NEAR(program.experiment.step_ns(), 9.4e6, 1e6);
  EXPECT_EQ(program.experiment.lost_ns(), 0) << "its trials took less";
  EXPECT_EQ(program.experiment.Seen(KeyCode(kReduce), kRing, kLeaveNcclAlone).steps, 0u);
}

// The first step is left out and the next 12 fill a block, so the remaining steps belong to the block in
// progress.
TEST(StepExperiment, SaysWhatAConfigHasCostInTheBlockUnderWay) {
  Program program;
  const auto step = [&](const CollectiveConfig& gather, int64_t milliseconds) {
    program.Step(gather, kLeaveNcclAlone, milliseconds * 1'000'000);
  };
  for (int i = 0; i < 14; ++i) step(kLeaveNcclAlone, 10);
  for (int i = 0; i < 2; ++i) step(kRing, 12);
  EXPECT_EQ(program.Seen().block_excess, 0) << "one step without arms is not enough to compare with";
  step(kLeaveNcclAlone, 10);
  step(kRing, 80);
  step(kRing, 9);
  step(kLeaveNcclAlone, 10);
  EXPECT_NEAR(program.Seen().block_excess, 0.2 + 0.2 + kMaxOfOneStep - 0.1, 1e-6);
  EXPECT_EQ(program.Seen().steps, 0u) << "the block is not judged yet";
}

// The host issues ten steps at once, so its clock shows nothing, but the device's clock does.
TEST(StepExperiment, TheDeviceSaysHowLongStepsTookOfAHostThatRunsAhead) {
  Program program;
  program.ahead_ns = 100'000'000;
  RunSteps(program, 200);
  EXPECT_GT(program.Seen().effect.mean, std::log(0.7) / 4) << "timed by when calls are issued";
  Program told;
  told.ahead_ns = 100'000'000;
  told.device_tells = true;
  RunSteps(told, 200);
  EXPECT_NEAR(told.Seen().effect.mean, std::log(0.7), 0.02);
  EXPECT_NEAR(told.experiment.step_ns(), 9.4e6, 1e6);
}

TEST(StepExperiment, AStepThatTheDeviceDidNotTimeIsLeftOutUntilTheDeviceIsSilent) {
  Program program;
  program.device_tells = true;
  RunSteps(program, 24);
  ASSERT_EQ(program.experiment.blocks(), 1u) << "the last step is not complete";
  program.device_tells = false;
  RunSteps(program, 24);
  EXPECT_EQ(program.experiment.blocks(), 1u);
  RunSteps(program, 24);
  EXPECT_EQ(program.experiment.blocks(), 3u) << "timed by when calls are issued";
}

// By the host's clock ten steps take no time, and the eleventh takes the time of all. Averages by this clock
// must not make a step by the device's clock look slow.
TEST(StepExperiment, ForgetsAveragesWithTheClockThatToldThem) {
  Program program;
  program.ahead_ns = 100'000'000;
  RunSteps(program, 20);
  program.device_tells = true;
  RunSteps(program, 40);
  EXPECT_EQ(program.experiment.clock_changes(), 1u);
  EXPECT_NEAR(program.experiment.step_ns(), 9.4e6, 1e6);
  EXPECT_LT(std::abs(program.Seen().first_off), std::log(1.5));
}

TEST(StepExperiment, AClockOfTheDeviceThatStandsIsNone) {
  Program program;
  program.device_tells = program.device_stands = true;
  RunSteps(program, 200);
  EXPECT_NEAR(program.Seen().effect.mean, std::log(0.7), 0.02) << "timed by when calls are issued";
}

TEST(StepExperiment, AStepInWhichAKeyUsedTwoConfigsSaysNothing) {
  Program program;
  for (int i = 0; i < 100; ++i) {
    program.Call(kGather, kRing, 1);
    program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  }
  EXPECT_EQ(program.experiment.blocks(), 0u);
}

// When keys begin to be tried one by one, some steps still use the config that all keys tried together. Such
// a step says nothing: the config is neither NCCL's choice nor an arm of this experiment.
TEST(StepExperiment, AStepWithTrialsOfKeysThatTakeNoPartSaysNothing) {
  Program program;
  for (int i = 0; i < 12; ++i) program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  const uint64_t before = program.experiment.steps();
  program.takes_part = false;
  for (int i = 0; i < 6; ++i) program.Step(kRing, kRing, 5'000'000);
  program.takes_part = true;
  program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  EXPECT_EQ(program.experiment.steps(), before + 1) << "only the last step without trials has ended";
  EXPECT_EQ(program.experiment.step_ns(), 10e6);
}

TEST(StepExperiment, AChoiceCountsWhileItsKeyDrawsNothing) {
  StepExperiment experiment;
  experiment.Begin({0, 1});
  int64_t now_ns = 0;
  for (uint64_t step = 0; step < 240; ++step) {
    const bool draws = step >= 60;
    const bool nccls = draws && step % 4 == 0;
    GuardedCall call{kGather, nccls ? CallUse::kDefaultSample : CallUse::kChoice,
                     nccls ? kLeaveNcclAlone : kRing, 1, now_ns};
    call.number = step;
    experiment.Take(call, draws);
    now_ns += nccls ? 10'000'000 : 7'000'000;
  }
  EXPECT_NEAR(experiment.Seen(KeyCode(kGather), kRing, kLeaveNcclAlone).effect.mean, std::log(0.7), 0.02);
}

// The time of a step without its arms is its time less their effects. It is not known if an arm's effect is
// not known, or if calls were samples.
TEST(StepExperiment, SaysWhatAStepTakesWithoutItsArms) {
  StepExperiment experiment;
  experiment.Begin({0, 1});
  int64_t now_ns = 0;
  std::vector<std::optional<double>> levels;
  for (uint64_t step = 0; step < 100; ++step) {
    const bool arm = step % 4 == 1;
    GuardedCall call{kGather, arm ? CallUse::kTrial : CallUse::kChoice, arm ? kRing : kLeaveNcclAlone, 1,
                     now_ns};
    call.number = step;
    levels.push_back(experiment.Take(call, true));
    now_ns += arm ? 7'000'000 : 10'000'000;
  }
  // A step ends with the first call of the next step. The first step has no predecessor to compare with.
  EXPECT_FALSE(levels[2]) << "nothing is known of the arm before the first block";
  for (size_t i = 60; i < levels.size(); ++i) {
    ASSERT_TRUE(levels[i]) << i;
    EXPECT_NEAR(*levels[i], std::log(10e6), 0.03) << i;
  }
}

TEST(StepExperiment, ACapturedStepSaysNothing) {
  Program program;
  program.captured = true;
  RunSteps(program, 100);
  EXPECT_EQ(program.experiment.blocks(), 0u);
}

// After every tenth step comes an evaluation with other calls and another length.
TEST(StepExperiment, StepsWithOtherCallsAreLeftOut) {
  Program program;
  for (uint64_t i = 0; i < 30; ++i) {
    RunSteps(program, 10, i + 1);
    program.Call(kGather, kLeaveNcclAlone, 0);
    program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 90'000'000);
  }
  EXPECT_NEAR(program.Seen().effect.mean, std::log(0.7), 0.03);
}

// After every tenth step comes an evaluation with as many calls as a step, which takes half as long. A key
// that occurs only in evaluations uses an arm, which must not be credited with the shorter time.
TEST(StepExperiment, StepsOfAsManyOtherCallsAreLeftOut) {
  constexpr TableKey kEvaluated{Collective::kAllGather, {50}, Role::kParameterGather};
  const auto digest_of = [](const TableKey& key) {
    return StepPeriod::DigestOf(KeyCode({key.collective, key.size_class, Role::kUnknown}));
  };
  for (const bool knows_calls : {false, true}) {
    Program program;
    if (knows_calls) program.experiment.Begin({1000, 5, 2 * digest_of(kGather) + digest_of(kReduce)});
    for (uint64_t i = 0; i < 60; ++i) {
      RunSteps(program, 10, i + 1);
      const CollectiveConfig& config = i % 2 == 0 ? kRing : kLeaveNcclAlone;
      for (const uint64_t place : {0, 2, 4}) program.Call(kEvaluated, config, place);
      program.Pass(5'000'000);
    }
    const SeenConfig seen = program.experiment.Seen(KeyCode(kEvaluated), kRing, kLeaveNcclAlone);
    EXPECT_EQ(seen.steps > 0, !knows_calls);
    EXPECT_NEAR(program.Seen().effect.mean, std::log(0.7), 0.03);
  }
}

TEST(StepExperiment, BeginsAnewWithOtherSteps) {
  Program program;
  RunSteps(program, 100);
  program.experiment.Begin({5000, 7});
  EXPECT_EQ(program.Seen().steps, 0u);
  EXPECT_EQ(program.experiment.blocks(), 0u);
}

// An arm that makes a step eight times as long has cost seven steps. This cost is known at once, and is the
// same when its block is complete. A step without arms that takes as long is a stall.
TEST(StepExperiment, AGrossArmIsChargedInFullAndAtOnce) {
  Program program;
  for (int i = 0; i < 40; ++i) program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 80'000'000);
  program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  EXPECT_EQ(program.experiment.lost_ns(), 0);
  program.Step(kRing, kLeaveNcclAlone, 80'000'000);
  program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  EXPECT_NEAR(program.experiment.lost_ns(), 70e6, 10e6);
  for (int i = 0; i < 12; ++i) program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  EXPECT_NEAR(program.experiment.lost_ns(), 70e6, 15e6);
}

// After every 23rd step the program writes a checkpoint, which takes as long as nine steps. Of 40 steps that
// use an arm, ten include a checkpoint.
TEST(StepExperiment, ArmsDoNotPayForCheckpointsThatMeetAllSteps) {
  Program program;
  for (int i = 0; i < 920; ++i) {
    const bool has_checkpoint = i % 23 == 22;
    program.Step(i % 4 == 0 ? kRing : kLeaveNcclAlone, kLeaveNcclAlone,
                 has_checkpoint ? 100'000'000 : 10'000'000);
  }
  EXPECT_LT(program.experiment.lost_ns(), 50e6) << "of the 900e6 of ten checkpoints";
}

TEST(StepExperiment, AnArmThatStallsPaysForItsStalls) {
  Program program;
  for (int i = 0; i < 400; ++i)
    program.Step(i % 4 == 0 ? kRing : kLeaveNcclAlone, kLeaveNcclAlone,
                 i % 40 == 20 ? 100'000'000 : 10'000'000);
  EXPECT_NEAR(program.experiment.lost_ns(), 900e6, 50e6);
}

// The stall rate of steps without arms is still known when the experiment begins again.
TEST(StepExperiment, StallsOfStepsWithoutArmsAreRemembered) {
  Program program;
  for (int i = 0; i < 240; ++i)
    program.Step(kLeaveNcclAlone, kLeaveNcclAlone, i % 20 == 7 ? 100'000'000 : 10'000'000);
  program.experiment.Begin({2200, 5});
  for (int i = 0; i < 60; ++i)
    program.Step(i % 2 == 0 ? kRing : kLeaveNcclAlone, kLeaveNcclAlone, i == 30 ? 100'000'000 : 10'000'000);
  EXPECT_LT(program.experiment.lost_ns(), 20e6);
}

// By the host's clock one step in ten is long, because the host then waits for its device. That is no stall.
// So by the device's clock an arm pays for each of its long steps.
TEST(StepExperiment, LongStepsByTheHostsClockExcuseNoArm) {
  Program program;
  program.ahead_ns = 100'000'000;
  for (int i = 0; i < 60; ++i) program.Step(kLeaveNcclAlone, kLeaveNcclAlone, 10'000'000);
  program.device_tells = true;
  for (int i = 0; i < 80; ++i)
    program.Step(i % 8 == 7 ? kRing : kLeaveNcclAlone, kLeaveNcclAlone, i % 8 == 7 ? 50'000'000 : 10'000'000);
  EXPECT_NEAR(program.experiment.lost_ns(), 9 * 40e6, 50e6);
}

TEST(StepExperiment, LossesAreCounted) {
  Program program;
  for (int i = 0; i < 160; ++i)
    program.Step(i % 5 == 0 ? kRing : kLeaveNcclAlone, kLeaveNcclAlone, i % 5 == 0 ? 12'000'000 : 10'000'000);
  EXPECT_NEAR(program.experiment.lost_ns(), 31 * 2e6, 8e6);
}

// There are more configs than the regression has room for, so the oldest are dropped.
TEST(StepExperiment, OldConfigsMakeRoom) {
  Program program;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20 * StepRegression::kMaxConfigs; ++i) {
    const int number = i / 12;
    const CollectiveConfig config{Algorithm::kTree, static_cast<Protocol>(number % 3),
                                  static_cast<uint8_t>(1 + number / 3)};
    const auto noise = static_cast<int64_t>(random() % 400'000);
    program.Step(i % 4 == 0 ? config : kLeaveNcclAlone, kLeaveNcclAlone,
                 (i % 4 == 0 ? 8'000'000 : 10'000'000) + noise);
  }
  const CollectiveConfig newest{Algorithm::kTree, Protocol::kLL128,
                                static_cast<uint8_t>(1 + 20 * StepRegression::kMaxConfigs / 12 / 3 - 1)};
  EXPECT_GT(program.experiment.Seen(KeyCode(kGather), newest, kLeaveNcclAlone).steps, 0u);
  EXPECT_EQ(
      program.experiment.Seen(KeyCode(kGather), {Algorithm::kTree, Protocol::kLL, 1}, kLeaveNcclAlone).steps,
      0u);
}

}  // namespace
}  // namespace dynamiccl
