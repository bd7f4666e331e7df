// SPDX-License-Identifier: Apache-2.0
// CART without pruning. Counting by value makes the search for a split linear in the rows.
#include "studies/agents/structure/random_forest.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dynamiccl::agents {
namespace {

// Number of rows of each class.
using Counts = std::vector<uint32_t>;

// Gini impurity times the number of rows.
double Impurity(const uint32_t* counts, int classes) {
  double all = 0, squares = 0;
  for (int c = 0; c < classes; ++c) {
    all += counts[c];
    squares += static_cast<double>(counts[c]) * counts[c];
  }
  return all == 0 ? 0 : all - squares / all;
}

// A candidate for dividing a node.
struct NodeSplit {
  double impurity = 0;
  size_t feature = 0;
  // -1: no split was found.
  int last_left = -1;
};

// Finds the best place to divide the rows by one feature and keeps it if it is better than `best`.
void TryFeature(const ForestSamples& samples, const std::vector<uint32_t>& rows, size_t feature,
                NodeSplit& best) {
  const auto classes = static_cast<size_t>(samples.classes);
  Counts by_value(kFeatureSteps * classes), left(classes), right(classes);
  for (const uint32_t row : rows) {
    ++by_value[samples.features[row * samples.width + feature] * classes + samples.labels[row]];
    ++right[samples.labels[row]];
  }
  for (int value = 0; value + 1 < kFeatureSteps; ++value) {
    uint32_t moved = 0;
    for (size_t c = 0; c < classes; ++c) {
      const uint32_t count = by_value[static_cast<size_t>(value) * classes + c];
      left[c] += count, right[c] -= count, moved += count;
    }
    if (moved == 0) continue;
    const double impurity = Impurity(left.data(), samples.classes) + Impurity(right.data(), samples.classes);
    if (impurity + 1e-9 < best.impurity) best = {impurity, feature, value};
  }
}

Counts CountLabels(const ForestSamples& samples, const std::vector<uint32_t>& rows) {
  Counts counts(static_cast<size_t>(samples.classes));
  for (const uint32_t row : rows) ++counts[samples.labels[row]];
  return counts;
}

}  // namespace

RandomForest::RandomForest(const ForestSamples& samples, const ForestSettings& settings,
                           std::mt19937_64& random)
    : settings_(settings), classes_(samples.classes), random_(&random) {
  for (int tree = 0; tree < settings.trees && samples.rows() > 0; ++tree) {
    Rows rows(std::min(samples.rows(), settings.most_rows));
    for (uint32_t& row : rows) row = static_cast<uint32_t>(random() % samples.rows());
    roots_.push_back(Grow(samples, std::move(rows), 0));
  }
  random_ = nullptr;
}

int32_t RandomForest::Grow(const ForestSamples& samples, Rows rows, int depth) {
  const Counts counts = CountLabels(samples, rows);
  const auto index = static_cast<int32_t>(nodes_.size());
  nodes_.emplace_back().label =
      static_cast<uint8_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  NodeSplit best{Impurity(counts.data(), samples.classes), 0, -1};
  if (depth == settings_.depth || rows.size() < 2 * settings_.smallest_leaf || best.impurity == 0)
    return index;
  const auto tries = static_cast<int>(std::sqrt(static_cast<double>(samples.width))) + 1;
  for (int i = 0; i < tries; ++i) TryFeature(samples, rows, (*random_)() % samples.width, best);
  if (best.last_left < 0) return index;
  const auto middle = std::partition(rows.begin(), rows.end(), [&](uint32_t row) {
    return samples.features[row * samples.width + best.feature] <= best.last_left;
  });
  Rows right(middle, rows.end());
  rows.erase(middle, rows.end());
  const int32_t left_child = Grow(samples, std::move(rows), depth + 1);
  const int32_t right_child = Grow(samples, std::move(right), depth + 1);
  Node& node = nodes_[static_cast<size_t>(index)];
  node.feature = static_cast<uint16_t>(best.feature);
  node.last_left = static_cast<uint8_t>(best.last_left);
  node.left = left_child;
  node.right = right_child;
  return index;
}

int RandomForest::Classify(std::span<const uint8_t> features) const {
  std::array<int, 256> votes{};
  for (const int32_t root : roots_) {
    const Node* node = &nodes_[static_cast<size_t>(root)];
    while (node->left >= 0)
      node =
          &nodes_[static_cast<size_t>(features[node->feature] <= node->last_left ? node->left : node->right)];
    ++votes[node->label];
  }
  return static_cast<int>(std::max_element(votes.begin(), votes.begin() + std::max(classes_, 1)) -
                          votes.begin());
}

}  // namespace dynamiccl::agents
