// SPDX-License-Identifier: Apache-2.0
#include "src/simulator/huber_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dynamiccl {
namespace {

TEST(HuberFit, LossIsContinuousAndGrowsStraightBeyondTheWidth) {
  for (const double width : {0.1, 1.0, 3.0}) {
    EXPECT_DOUBLE_EQ(HuberLoss(width, width), width * width / 2);
    EXPECT_NEAR(HuberLoss(width + 1e-9, width), width * width / 2, 1e-8);
    EXPECT_NEAR(HuberLoss(width + 2, width) - HuberLoss(width + 1, width), width, 1e-12);
    EXPECT_DOUBLE_EQ(HuberLoss(-2 * width, width), HuberLoss(2 * width, width));
  }
}

// The exact solution for a straight line is known. One point in five is far off and must have almost no
// weight.
TEST(HuberFit, FindsALineUnderOutliers) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<double> y;
  for (int i = 0; i < 200; ++i) y.push_back(0.7 + 0.03 * i + noise(random) + (i % 5 == 0 ? 20 : 0));
  const ResidualFunction line = [&](std::span<const double> x, std::vector<double>& out) {
    out.clear();
    for (size_t i = 0; i < y.size(); ++i) out.push_back(x[0] + x[1] * static_cast<double>(i) - y[i]);
  };
  const HuberFit fit = MinimizeHuber(line, {0, 0}, 0.02, 500);
  EXPECT_NEAR(fit.x[0], 0.7, 0.03);
  EXPECT_NEAR(fit.x[1], 0.03, 0.0003);
}

TEST(HuberFit, FollowsRosenbrocksValleyToItsEnd) {
  const ResidualFunction valley = [](std::span<const double> x, std::vector<double>& out) {
    out = {10 * (x[1] - x[0] * x[0]), 1 - x[0]};
  };
  const HuberFit fit = MinimizeHuber(valley, {-1.2, 1}, 1e6, 500);
  EXPECT_NEAR(fit.x[0], 1, 1e-3);
  EXPECT_NEAR(fit.x[1], 1, 2e-3);
}

TEST(HuberFit, IsNeverWorseThanTheStartEvenOnNonsense) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    const double a = static_cast<double>(random() % 1000) / 10;
    const ResidualFunction odd = [&](std::span<const double> x, std::vector<double>& out) {
      out = {std::sin(a * x[0]) + x[1] * x[1], std::exp(x[0]) - a, std::fabs(x[1] - a)};
    };
    const std::vector<double> start{a / 50 - 1, 1 - a / 50};
    std::vector<double> residuals;
    odd(start, residuals);
    double before = 0;
    for (const double residual : residuals) before += HuberLoss(residual, 0.1);
    EXPECT_LE(MinimizeHuber(odd, start, 0.1, 100).loss, before);
  }
}

}  // namespace
}  // namespace dynamiccl
