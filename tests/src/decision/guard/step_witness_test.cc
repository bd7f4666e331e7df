// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/step_witness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

// Generates steps of 30 ms. Their times vary (in logs) from step to step and in waves of about fifty steps.
class Steps {
 public:
  Steps(unsigned seed, double noise, double waves = 0) : random_(seed), noise_(0, noise), waves_(waves) {}
  // Adds steps that take `effect` times as long until the witness answers, at most `most` of them.
  std::optional<bool> Run(double effect, int most) {
    for (int i = 0; i < most; ++i) {
      if (waves_ > 0) {
        std::normal_distribution<double> move(0, waves_ * std::sqrt(1 - kMemory * kMemory));
        wave_ = kMemory * wave_ + move(random_);
      }
      const auto said = witness.Take(std::log(3e7 * effect) + wave_ + noise_(random_));
      if (said) return said;
    }
    return std::nullopt;
  }
  StepWitness witness;

 private:
  static constexpr double kMemory = 0.975;
  std::mt19937_64 random_;
  std::normal_distribution<double> noise_;
  double waves_;
  double wave_ = 0;
};

TEST(StepWitness, CannotSayAnythingBeforeItHasSeenSteps) {
  Steps steps(1, 0.03);
  EXPECT_FALSE(steps.witness.Suspect());
  steps.Run(1, 20);
  EXPECT_FALSE(steps.witness.Suspect());
  steps.Run(1, 100);
  EXPECT_TRUE(steps.witness.Suspect());
  steps.witness.Forget();
  EXPECT_FALSE(steps.witness.Suspect());
}

TEST(StepWitness, ConfirmsWhatStepsFeel) {
  int confirmed = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Steps steps(seed, 0.04);
    EXPECT_FALSE(steps.Run(1, 400));
    steps.Run(1.1, 10);  // These steps pass until calls show the change.
    ASSERT_TRUE(steps.witness.Suspect());
    confirmed += steps.Run(1.1, StepWitness::kStepsAfter).value();
  }
  EXPECT_GE(confirmed, 97);
}

TEST(StepWitness, RefutesWhatStepsDoNotFeel) {
  int confirmed = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Steps steps(seed, 0.04, seed % 2 == 0 ? 0.08 : 0);
    steps.Run(1, 600);
    ASSERT_TRUE(steps.witness.Suspect());
    confirmed += steps.Run(1, StepWitness::kStepsAfter).value();
    EXPECT_FALSE(steps.Run(1, 100)) << "nothing is suspected any more";
  }
  EXPECT_LE(confirmed, 6);
}

}  // namespace
}  // namespace dynamiccl
