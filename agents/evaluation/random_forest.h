// SPDX-License-Identifier: Apache-2.0
// A random forest for classes over features in 16 steps (Breiman 2001): the strong simple alternative of the
// evaluation.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace dynamiccl::agents {

inline constexpr int kFeatureSteps = 16;  // values are 0 ... 15

// Rows of equal width, one after the other.
struct ForestSamples {
  size_t width = 0;
  std::vector<uint8_t> features;
  std::vector<uint8_t> labels;  // below `classes`
  int classes = 0;

  size_t rows() const { return labels.size(); }
  std::span<const uint8_t> row(size_t i) const { return {features.data() + i * width, width}; }
};

struct ForestSettings {
  int trees = 40;
  int depth = 14;
  size_t smallest_leaf = 4;  // rows
  // Of each tree: more rows of the same jobs cost minutes and are hardly other rows.
  size_t most_rows = 20'000;
};

class RandomForest {
 public:
  // Each tree on as many rows, up to `most_rows`, drawn with repetition; each split the best (Gini) of
  // sqrt(width) features. Without a row every answer is class 0.
  RandomForest(const ForestSamples& samples, const ForestSettings& settings, std::mt19937_64& random);

  // The class that most trees vote for; of equals the lowest.
  int Classify(std::span<const uint8_t> features) const;

 private:
  struct Node {
    uint16_t feature = 0;
    uint8_t last_left = 0;  // values up to it go left
    uint8_t label = 0;
    int32_t left = -1, right = -1;  // -1: a leaf
  };
  using Rows = std::vector<uint32_t>;

  int32_t Grow(const ForestSamples& samples, Rows rows, int depth);

  ForestSettings settings_;
  int classes_ = 0;
  std::mt19937_64* random_ = nullptr;  // while it grows
  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
};

}  // namespace dynamiccl::agents
