// SPDX-License-Identifier: Apache-2.0
// A random forest for classes (Breiman 2001) over features with 16 steps. It is the strong simple alternative
// in the evaluation.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace dynamiccl::agents {

// Features are whole numbers from 0 to 15.
inline constexpr int kFeatureSteps = 16;

// Rows of equal width, one after the other.
struct ForestSamples {
  size_t width = 0;
  std::vector<uint8_t> features;
  // One label for each row, smaller than `classes`.
  std::vector<uint8_t> labels;
  int classes = 0;

  size_t rows() const { return labels.size(); }
  std::span<const uint8_t> row(size_t i) const { return {features.data() + i * width, width}; }
};

// Settings of the training.
struct ForestSettings {
  int trees = 40;
  int depth = 14;
  // Least number of rows in a leaf; smaller nodes are not divided.
  size_t smallest_leaf = 4;
  // Number of rows of each tree. More rows would come from the same jobs and hardly differ, but cost minutes.
  size_t most_rows = 20'000;
};

// Immutable after construction, so any thread may classify.
class RandomForest {
 public:
  // Trains each tree on up to `most_rows` rows, drawn with replacement. Each split is the best by Gini
  // impurity among about sqrt(width) random features. Without any row every answer is class 0.
  RandomForest(const ForestSamples& samples, const ForestSettings& settings, std::mt19937_64& random);

  // Returns the class that most trees vote for, and the lowest one among equals.
  int Classify(std::span<const uint8_t> features) const;

 private:
  // A node of a tree; both children are -1 in a leaf.
  struct Node {
    uint16_t feature = 0;
    // Values up to this one go left.
    uint8_t last_left = 0;
    uint8_t label = 0;
    // Indices of the children.
    int32_t left = -1, right = -1;
  };
  using Rows = std::vector<uint32_t>;

  int32_t Grow(const ForestSamples& samples, Rows rows, int depth);

  ForestSettings settings_;
  int classes_ = 0;
  // Valid only while trees grow.
  std::mt19937_64* random_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
};

}  // namespace dynamiccl::agents
