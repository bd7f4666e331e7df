// SPDX-License-Identifier: Apache-2.0
#include "src/base/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>

namespace dynamiccl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Values = std::vector<double>;

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddleValues) {
  EXPECT_EQ(Median(Values{7}), 7);
  EXPECT_EQ(Median(Values{5, 1, 3}), 3);
  EXPECT_EQ(Median(Values{4, 1, 2, 10}), 3);
  EXPECT_EQ(Median(Values{1, 4}), 2.5);
}

TEST(Median, TakesAnyArithmeticType) {
  EXPECT_EQ(Median(std::vector<int64_t>{3, 1, 2, 2}), 2);
  EXPECT_EQ(Median(std::array<float, 2>{1.5F, 2.5F}), 2);
}

TEST(Median, LeavesItsArgumentAlone) {
  const Values values{3, 1, 2};
  EXPECT_EQ(Median(values), 2);
  EXPECT_EQ(values, (Values{3, 1, 2}));
}

TEST(Median, EqualsTheSortedDefinitionForRandomValues) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Values values(1 + random() % 40);
    for (double& value : values) value = static_cast<double>(random() % 17);
    Values sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const size_t n = sorted.size();
    EXPECT_EQ(Median(values), (sorted[(n - 1) / 2] + sorted[n / 2]) / 2);
    EXPECT_EQ(MedianInPlace(values), (sorted[(n - 1) / 2] + sorted[n / 2]) / 2);
  }
}

// The values are those of R: quantile(c(1, 2, 4, 8, 16), c(0.1, 0.25, 0.9), type = 7).
TEST(Quantile, InterpolatesAsTypeSeven) {
  const Values values{16, 1, 8, 2, 4};
  EXPECT_DOUBLE_EQ(Quantile(values, 0.1), 1.4);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.25), 2);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.9), 12.8);
  EXPECT_EQ(Quantile(values, 0), 1);
  EXPECT_EQ(Quantile(values, 1), 16);
  EXPECT_EQ(Quantile(values, 0.5), Median(values));
}

TEST(Quantile, MayBeInfiniteAndIsNeverNoNumber) {
  const Values values{1, 2, kInfinity, kInfinity};
  EXPECT_EQ(Quantile(values, 0.9), kInfinity);
  EXPECT_EQ(Quantile(values, 0.5), kInfinity);
  EXPECT_EQ(Quantile(values, 0.25), 1.75);
}

TEST(NearestRank, IsAMeasuredValue) {
  EXPECT_EQ(NearestRank(Values{3, 1, 2}, 0.5), 2);
  EXPECT_EQ(NearestRank(Values{4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(NearestRank(Values{4, 1, 3, 2}, 0.99), 4);
  EXPECT_EQ(NearestRank(Values{4, 1, 3, 2}, 0), 1);
  EXPECT_EQ(NearestRank(Values{7}, 0.99), 7);
}

TEST(Statistics, OfNoSamplesAreZero) {
  EXPECT_EQ(Median(Values{}), 0);
  EXPECT_EQ(Quantile(Values{}, 0.9), 0);
  EXPECT_EQ(NearestRank(Values{}, 0.9), 0);
  EXPECT_EQ(Mean(Values{}), 0);
  EXPECT_EQ(GeometricMean(Values{}), 0);
}

TEST(Mean, ArithmeticAndGeometric) {
  EXPECT_EQ(Mean(std::vector<int>{1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(GeometricMean(Values{4, 1}), 2);
  EXPECT_DOUBLE_EQ(MeanLog(Values{1, std::exp(2.0)}), 1);
}

TEST(RobustDeviation, IsTheDeviationOfNormalNoise) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(10, 2);
  Values values(100'001);
  for (double& value : values) value = noise(random);
  const double middle = Median(values);
  EXPECT_NEAR(middle, 10, 0.03);
  EXPECT_NEAR(RobustDeviationInPlace(middle, values), 2, 0.03);
}

TEST(BootstrapInterval, HoldsTheMiddleNinetyFivePercent) {
  Values draws(1001);
  std::iota(draws.begin(), draws.end(), 0);
  std::shuffle(draws.begin(), draws.end(), std::mt19937(1));
  const ConfidenceInterval interval = BootstrapInterval(draws);
  EXPECT_DOUBLE_EQ(interval.low, 25);
  EXPECT_DOUBLE_EQ(interval.high, 975);
}

// The critical values of the two-sided signed-rank test at 5 % come from Wilcoxon, Katti and Wilcox,
// "Critical Values and Probability Levels for the Wilcoxon Rank Sum Test and the Wilcoxon Signed Rank Test"
// (1970). At each end, the interval leaves out one mean more than the critical value.
TEST(SignedRankEstimate, LeavesOutWhatTheTablesSay) {
  for (const auto& [n, critical] : {std::pair{6, 0}, {7, 2}, {10, 8}, {20, 52}, {40, 264}, {50, 434}}) {
    Values values(static_cast<size_t>(n));
    std::iota(values.begin(), values.end(), 0);
    Values means;
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j <= i; ++j) means.push_back((values[i] + values[j]) / 2);
    }
    std::sort(means.begin(), means.end());
    const MiddleEstimate estimate = SignedRankEstimate(values);
    EXPECT_EQ(estimate.middle, (n - 1) / 2.0);
    EXPECT_NEAR(estimate.interval.low, means[static_cast<size_t>(critical)], 0.5) << n;
    EXPECT_NEAR(estimate.interval.high, means[means.size() - 1 - static_cast<size_t>(critical)], 0.5) << n;
  }
}

TEST(SignedRankEstimate, HoldsTheMiddleOfAnySymmetricValuesInNineteenOfTwenty) {
  std::mt19937_64 random(9);
  for (const int n : {6, 12, 60}) {
    int outside = 0;
    constexpr int kSamples = 4000;
    for (int sample = 0; sample < kSamples; ++sample) {
      Values values(static_cast<size_t>(n));
      std::cauchy_distribution<double> tails(3, 1);
      for (double& value : values) value = tails(random);
      const ConfidenceInterval interval = SignedRankEstimate(values).interval;
      outside += interval.low > 3 || interval.high < 3 ? 1 : 0;
    }
    EXPECT_NEAR(1.0 * outside / kSamples, 0.05, n == 6 ? 0.03 : 0.015) << n;
  }
}

TEST(SignedRankEstimate, FewValuesHaveNoInterval) {
  const MiddleEstimate estimate = SignedRankEstimate(Values{1, 2, 3, 4, 5});
  EXPECT_EQ(estimate.middle, 3);
  EXPECT_TRUE(std::isinf(estimate.interval.low) && std::isinf(estimate.interval.high));
  EXPECT_EQ(SignedRankEstimate(Values{}).middle, 0);
}

}  // namespace
}  // namespace dynamiccl
