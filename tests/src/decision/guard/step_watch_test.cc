// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/step_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

// A program whose steps vary by 7 %, as on a busy machine.
class Program {
 public:
  explicit Program(uint64_t seed, double step_ns = 25e6) : random_(seed), step_ns_(step_ns) {}

  // Makes n steps, each `factor` times as long as at first. Returns the number of the step at which the watch
  // reports a change, or 0 if it reports none.
  int Steps(int n, double factor) {
    for (int i = 1; i <= n; ++i) {
      const double noise = std::normal_distribution(0.0, 0.07)(random_);
      const double ns = step_ns_ * factor * std::exp(noise);
      now_ns_ += static_cast<int64_t>(ns);
      if (watch.Take(std::log(ns), now_ns_)) return i;
    }
    return 0;
  }
  StepWatch watch;

 private:
  std::mt19937_64 random_;
  double step_ns_;
  int64_t now_ns_ = 0;
};

TEST(StepWatch, SeesThatStepsGoOnToTakeLonger) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Program program(seed);
    ASSERT_EQ(program.Steps(100, 1), 0) << seed;
    const int seen = program.Steps(100, 1.4);
    EXPECT_GT(seen, 16) << seed;
    EXPECT_LE(seen, 40) << seed;
  }
}

TEST(StepWatch, SeesThatTheyTakeLessAgain) {
  Program program(1);
  ASSERT_EQ(program.Steps(100, 1), 0);
  ASSERT_NE(program.Steps(100, 1.4), 0);
  ASSERT_EQ(program.Steps(60, 1.4), 0) << "one change is reported once";
  EXPECT_NE(program.Steps(100, 1), 0);
}

// An adopted config makes steps shorter by 30 %. They become longer again before the watch has learnt their
// usual time.
TEST(StepWatch, SeesAChangeRightAfterAnAdoption) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Program program(seed);
    ASSERT_EQ(program.Steps(100, 1), 0) << seed;
    program.watch.Adopt(std::log(0.7));
    ASSERT_EQ(program.Steps(10, 0.7), 0) << seed << ": an adoption is no change";
    EXPECT_NE(program.Steps(40, 1), 0) << seed;
  }
}

// The second adoption comes before the watch has learnt a usual time.
TEST(StepWatch, LearnsAcrossAdoptions) {
  Program program(1);
  ASSERT_EQ(program.Steps(12, 1), 0);
  program.watch.Adopt(std::log(0.7));
  ASSERT_EQ(program.Steps(12, 0.7), 0);
  EXPECT_NE(program.Steps(40, 1), 0);
}

TEST(StepWatch, NoiseIsNoChange) {
  for (uint64_t seed = 1; seed <= 50; ++seed) EXPECT_EQ(Program(seed).Steps(2000, 1), 0) << seed;
}

// Other traffic slows 300 ms of every ten seconds.
TEST(StepWatch, ABurstIsNoChange) {
  Program program(2, 10e6);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(program.Steps(1000, 1), 0);
    EXPECT_EQ(program.Steps(21, 1.4), 0);
  }
}

TEST(StepWatch, OtherConfigsAreNoChange) {
  Program program(3);
  ASSERT_EQ(program.Steps(100, 1), 0);
  program.watch.Forget();
  EXPECT_EQ(program.Steps(500, 0.7), 0);
}

}  // namespace
}  // namespace dynamiccl
