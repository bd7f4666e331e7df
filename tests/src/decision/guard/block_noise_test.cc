// SPDX-License-Identifier: Apache-2.0
// Compares the deviations of block means with the formulas for noise with and without memory.
#include "src/decision/guard/block_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

// Noise of unit variance, a first-order autoregression.
class Noise {
 public:
  explicit Noise(double memory, uint64_t seed) : random_(seed), memory_(memory) {}
  double Next() { return last_ = memory_ * last_ + std::sqrt(1 - memory_ * memory_) * normal_(random_); }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double memory_;
  double last_ = 0;
};

// Returns the variance of the mean of n consecutive values of such noise.
double VarianceOfMean(double memory, int n) {
  double sum = n;
  for (int lag = 1; lag < n; ++lag) sum += 2 * (n - lag) * std::pow(memory, lag);
  return sum / n / n;
}

constexpr double kSpread = 0.08;

BlockNoise AfterNoise(double memory, int calls, uint64_t seed) {
  BlockNoise noise;
  Noise source(memory, seed);
  for (int i = 0; i < calls; ++i) noise.Take(kSpread * source.Next());
  return noise;
}

TEST(BlockNoise, AgreesWithTheFormulaAtEveryLength) {
  for (const double memory : {0.0, 0.5, 0.95}) {
    for (const int calls : {16, 32, 64, 128, 256, 512}) {
      double squares = 0;
      for (uint64_t seed = 0; seed < 16; ++seed) {
        squares += std::pow(AfterNoise(memory, 100'000, seed).DeviationOf(calls, 1), 2);
      }
      const double expected = kSpread * std::sqrt(VarianceOfMean(memory, calls));
      EXPECT_NEAR(std::sqrt(squares / 16) / expected, 1, 0.1) << memory << " " << calls;
    }
  }
}

TEST(BlockNoise, LengthBetweenTwoScalesIsTakenForTheShorter) {
  const BlockNoise noise = AfterNoise(0.5, 50'000, 1);
  EXPECT_EQ(noise.DeviationOf(255, 1), noise.DeviationOf(128, 1));
  EXPECT_EQ(noise.DeviationOf(3, 1), noise.DeviationOf(16, 1));
}

TEST(BlockNoise, WhatIsLongerThanAllBlocksIsIndependentForAsManySpansAtMost) {
  const BlockNoise noise = AfterNoise(0.5, 50'000, 1);
  EXPECT_EQ(noise.DeviationOf(2'048, 1), noise.DeviationOf(512, 1));
  EXPECT_DOUBLE_EQ(noise.DeviationOf(2'048, 2), noise.DeviationOf(512, 1) / std::sqrt(2));
  EXPECT_DOUBLE_EQ(noise.DeviationOf(1'024, 8), noise.DeviationOf(512, 1) / std::sqrt(2));
}

TEST(BlockNoise, BeforeEnoughBlocksWereSeenAShorterLengthAnswers) {
  BlockNoise noise;
  EXPECT_GT(noise.DeviationOf(16, 1), 0.02);
  Noise source(0, 1);
  for (int i = 0; i < 8 * 32 - 1; ++i) noise.Take(kSpread * source.Next());
  EXPECT_EQ(noise.DeviationOf(32, 1), noise.DeviationOf(16, 1));
  noise.Take(0);
  EXPECT_NE(noise.DeviationOf(32, 1), noise.DeviationOf(16, 1));
}

TEST(BlockNoise, AdmittedNoiseCountsUpToItsLength) {
  BlockNoise noise = AfterNoise(0, 50'000, 1);
  const double longer = noise.DeviationOf(512, 1);
  noise.Admit(0.07, 200);
  EXPECT_DOUBLE_EQ(noise.DeviationOf(16, 1), 0.07);
  EXPECT_DOUBLE_EQ(noise.DeviationOf(128, 1), 0.07);
  EXPECT_EQ(noise.DeviationOf(512, 1), longer);
  noise.Admit(0.01, 200);  // This is less than the known deviation.
  EXPECT_DOUBLE_EQ(noise.DeviationOf(128, 1), 0.07);
}

TEST(BlockNoise, VariesAboutItsMean) {
  BlockNoise noise;
  Noise source(0, 1);
  for (int i = 0; i < 100'000; ++i) noise.Take(0.3 + kSpread * source.Next());
  EXPECT_NEAR(noise.mean(), 0.3, 0.005);
  EXPECT_NEAR(noise.DeviationOf(64, 1), kSpread / 8, 0.003);
  const double varies = noise.DeviationOf(512, 1);
  noise.Recentre();
  EXPECT_EQ(noise.DeviationOf(512, 1), varies);
  noise.Take(-0.2);
  EXPECT_EQ(noise.mean(), -0.2);
}

}  // namespace
}  // namespace dynamiccl
