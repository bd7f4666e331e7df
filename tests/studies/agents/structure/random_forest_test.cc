// SPDX-License-Identifier: Apache-2.0
#include "studies/agents/structure/random_forest.h"

#include <gtest/gtest.h>

namespace dynamiccl::agents {
namespace {

// The class is 1 if both of two features are large, 2 if both are small, and otherwise 0. All other features
// are noise.
int TrueClass(std::span<const uint8_t> row) {
  const bool a = row[2] >= 8, b = row[5] >= 4;
  return a && b ? 1 : !a && !b ? 2 : 0;
}

ForestSamples RandomSamples(size_t rows, std::mt19937_64& random) {
  ForestSamples samples;
  samples.width = 9;
  samples.classes = 3;
  for (size_t i = 0; i < rows * samples.width; ++i)
    samples.features.push_back(static_cast<uint8_t>(random() % kFeatureSteps));
  samples.labels.resize(rows);
  for (size_t i = 0; i < rows; ++i) samples.labels[i] = static_cast<uint8_t>(TrueClass(samples.row(i)));
  return samples;
}

TEST(RandomForest, LearnsARuleOfTwoFeatures) {
  std::mt19937_64 random(1);
  const RandomForest forest(RandomSamples(3000, random), {}, random);
  const ForestSamples unseen = RandomSamples(1000, random);
  int right = 0;
  for (size_t i = 0; i < unseen.rows(); ++i)
    right += forest.Classify(unseen.row(i)) == unseen.labels[i] ? 1 : 0;
  EXPECT_GT(right, 970);
}

TEST(RandomForest, WithoutRowsOrChoiceAnswersTheOnlyClass) {
  std::mt19937_64 random(2);
  ForestSamples none;
  none.width = 3;
  none.classes = 4;
  const std::vector<uint8_t> row = {1, 2, 3};
  EXPECT_EQ(RandomForest(none, {}, random).Classify(row), 0);
  for (int i = 0; i < 20; ++i) {
    none.features.insert(none.features.end(), row.begin(), row.end());
    none.labels.push_back(3);
  }
  EXPECT_EQ(RandomForest(none, {}, random).Classify(row), 3);
}

}  // namespace
}  // namespace dynamiccl::agents
