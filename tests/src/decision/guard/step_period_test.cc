// SPDX-License-Identifier: Apache-2.0
// Tests the periods found for programs whose steps are known.
#include "src/decision/guard/step_period.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

namespace dynamiccl {
namespace {

constexpr int64_t kCallNs = 1'000'000;

class Program {
 public:
  void Steps(int n, const std::vector<uint32_t>& step) {
    for (int i = 0; i < n; ++i) Calls(step);
  }
  void Calls(const std::vector<uint32_t>& keys) {
    for (const uint32_t key : keys) period_.Take(key, now_ns_ += kCallNs);
  }
  const StepPeriod& period() const { return period_; }

 private:
  StepPeriod period_;
  int64_t now_ns_ = 0;
};

std::vector<uint32_t> RandomStep(std::mt19937_64& random, size_t calls) {
  std::vector<uint32_t> step(calls);
  for (uint32_t& key : step) key = static_cast<uint32_t>(random() % 6);
  step.back() = 99;  // This key ensures that the step contains no shorter period.
  return step;
}

TEST(StepPeriod, TheDigestIsThatOfTheCallsWhereverAStepBegins) {
  Program program, later, other, twice;
  EXPECT_EQ(program.period().digest(), 0u) << "no period is known";
  program.Steps(40, {1, 2, 3, 3});
  later.Calls({3, 3});
  later.Steps(40, {1, 2, 3, 3});
  later.Calls({1});
  other.Steps(40, {1, 2, 3, 4});
  twice.Steps(40, {1, 2, 3, 3, 3});
  EXPECT_NE(program.period().digest(), 0u);
  EXPECT_EQ(later.period().digest(), program.period().digest());
  EXPECT_NE(other.period().digest(), program.period().digest());
  EXPECT_NE(twice.period().digest(), program.period().digest());
}

TEST(StepPeriod, CallsThatShowedThePeriodCountAsRepeated) {
  Program program;
  program.Calls({7, 8, 9, 9});
  program.Steps(10, {1});
  EXPECT_EQ(program.period().repeated(), 0u) << "no period is looked for in so few calls";
  program.Steps(40, {1});
  EXPECT_EQ(program.period().repeated(), 50u) << "all but the calls at the start";
  program.Calls({2});
  EXPECT_EQ(program.period().repeated(), 0u);
}

TEST(StepPeriod, FindsRandomSteps) {
  std::mt19937_64 random(1);
  for (const size_t calls : {1u, 2u, 3u, 7u, 40u, 333u, 1000u, 2730u}) {
    Program program;
    program.Steps(3 + static_cast<int>(128 / calls), RandomStep(random, calls));
    program.Steps(calls > 100 ? 4 : 0, RandomStep(random, 1));
    Program long_program;
    const auto step = RandomStep(random, calls);
    long_program.Steps(8 + static_cast<int>(128 / calls), step);
    EXPECT_EQ(long_program.period().calls(), calls);
    EXPECT_TRUE(long_program.period().steady());
    EXPECT_NEAR(static_cast<double>(long_program.period().step_ns()), static_cast<double>(calls) * kCallNs,
                1);
  }
}

TEST(StepPeriod, ARandomProgramHasNone) {
  std::mt19937_64 random(2);
  Program program;
  for (int i = 0; i < 200; ++i) {
    program.Calls(RandomStep(random, 50));
    ASSERT_EQ(program.period().calls(), 0u) << i;
  }
}

// Gathers of equal layers come first, then gathers and reductions of the same layers. These long stretches
// have periods of their own, which are no steps.
TEST(StepPeriod, LayersAreNoSteps) {
  std::vector<uint32_t> step(96, 1);
  for (int layer = 0; layer < 96; ++layer) step.insert(step.end(), {1, 2});
  step.push_back(3);
  Program program;
  program.Steps(6, step);
  EXPECT_EQ(program.period().calls(), step.size());
  program.Steps(20, step);
  EXPECT_EQ(program.period().calls(), step.size());
  EXPECT_TRUE(program.period().steady());
}

TEST(StepPeriod, StartupAndRareCallsDoNotHideIt) {
  std::mt19937_64 random(3);
  const auto step = RandomStep(random, 30);
  Program program;
  program.Calls(RandomStep(random, 500));
  program.Steps(40, step);
  ASSERT_EQ(program.period().calls(), step.size());
  for (int i = 0; i < 10; ++i) {
    program.Calls({50, 51});  // This is an evaluation.
    EXPECT_FALSE(program.period().steady());
    program.Steps(4 + static_cast<int>(random() % 9), step);
    EXPECT_EQ(program.period().calls(), step.size()) << i;
    EXPECT_TRUE(program.period().steady());
    EXPECT_LT(program.period().step_ns(), 31 * kCallNs) << "what the evaluation took is no step's";
  }
}

// An evaluation that comes back regularly is part of a larger step.
TEST(StepPeriod, RegularEvaluationsMakeALongerStep) {
  std::mt19937_64 random(5);
  const auto step = RandomStep(random, 30);
  Program program;
  for (int i = 0; i < 20; ++i) {
    program.Steps(5, step);
    program.Calls({50, 51});
  }
  EXPECT_EQ(program.period().calls(), 152u);
}

TEST(StepPeriod, AnotherProgramHasAnotherPeriod) {
  std::mt19937_64 random(4);
  Program program;
  program.Steps(30, RandomStep(random, 30));
  ASSERT_EQ(program.period().calls(), 30u);
  program.Steps(40, RandomStep(random, 44));
  EXPECT_EQ(program.period().calls(), 44u);
}

}  // namespace
}  // namespace dynamiccl
