// SPDX-License-Identifier: Apache-2.0
// Tests the estimated shares that the program waits for, on programs with known shares.
#include "src/decision/guard/step_effects.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

// A program with steps of two calls of each of four keys. The program waits for a share of each call. Every
// second call takes up to half as long again.
class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  void Steps(int n, double noise) {
    for (int i = 0; i < n; ++i) {
      for (const uint32_t key : {0u, 1u, 2u, 3u, 3u, 1u, 0u, 2u}) Call(key, noise);
    }
  }
  const StepEffects& effects() const { return effects_; }
  double shares[4] = {1, 0.5, 0, 1};
  bool timed = true;

 private:
  void Call(uint32_t key, double noise) {
    period_.Take(key, now_ns_);
    const double excess = random_() % 2 == 0 ? 0 : std::uniform_real_distribution(0.0, 5e5)(random_);
    effects_.Take({key, calls_++, now_ns_, timed ? excess : 0, timed || excess == 0}, period_);
    const double compute = 1e7 * std::exp(std::normal_distribution(0.0, noise)(random_));
    now_ns_ += static_cast<int64_t>(compute + shares[key] * (1e6 + excess));
  }

  std::mt19937_64 random_;
  StepPeriod period_;
  StepEffects effects_;
  uint64_t calls_ = 0;
  int64_t now_ns_ = 0;
};

TEST(WaitedShares, AreThoseOfTheProgram) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Program program(seed);
    program.Steps(800, 0.015);
    const WaitedShares& shares = program.effects().shares();
    for (uint32_t key = 0; key < 4; ++key) {
      const auto share = shares.Of(key);
      ASSERT_TRUE(share);
      EXPECT_LT(share->error, 0.15) << seed;
      EXPECT_NEAR(share->share, program.shares[key], 4 * share->error) << seed << " " << key;
    }
    EXPECT_FALSE(shares.Of(4));
  }
}

TEST(WaitedShares, LevelsAreKnownOnlyWhereTheyAreClear) {
  Program noisy(1);
  noisy.Steps(100, 0.2);
  for (uint32_t key = 0; key < 4; ++key) EXPECT_EQ(noisy.effects().LevelOf(key), Criticality::kUnknown);
  Program program(2);
  program.Steps(1000, 0.005);
  const StepEffects& shares = program.effects();
  EXPECT_EQ(shares.LevelOf(0), Criticality::kExposed);
  EXPECT_EQ(shares.LevelOf(1), Criticality::kPartial);
  EXPECT_EQ(shares.LevelOf(2), Criticality::kHidden);
  EXPECT_EQ(shares.LevelOf(7), Criticality::kUnknown);
  program.shares[2] = 1;
  program.Steps(20000, 0.005);
  EXPECT_EQ(shares.LevelOf(2), Criticality::kExposed) << "the program is another one now";
}

// Some steps used other configs in calls without times. How much longer these calls took is not known, so the
// steps do not count.
TEST(WaitedShares, StepsWithUnknownExcessAreLeftOut) {
  Program program(3);
  program.Steps(500, 0.015);
  program.timed = false;
  program.Steps(500, 0.015);
  for (uint32_t key = 0; key < 4; ++key) {
    const auto share = program.effects().shares().Of(key);
    ASSERT_TRUE(share);
    EXPECT_NEAR(share->share, program.shares[key], 4 * share->error) << key;
  }
}

TEST(StepEffects, KnowsNothingWithoutSteps) {
  std::mt19937_64 random(4);
  StepPeriod period;
  StepEffects effects;
  for (int i = 0; i < 5000; ++i) {
    const auto key = static_cast<uint32_t>(random() % 5);
    period.Take(key, i * 1000);
    effects.Take({key, static_cast<uint64_t>(i), i * 1000, 100}, period);
  }
  EXPECT_FALSE(effects.shares().Of(1));
}

}  // namespace
}  // namespace dynamiccl
