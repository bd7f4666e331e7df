// SPDX-License-Identifier: Apache-2.0
// The networks are trained further in float. The trees keep their splits; only their leaves shift, as in one
// more round of boosting with a reduced step.
#include "agents/config/fine_tuning.h"

#include <algorithm>
#include <cmath>

#include "agents/quantisation.h"
#include "src/policy/config_inference.h"

namespace dynamiccl::agents {
namespace {

// Share of the remaining residual by which a leaf moves when many samples reach it.
constexpr double kRate = 0.1;
// Number of samples at which a leaf moves by half of kRate.
constexpr double kTrust = 4;
// The integer in the policy's leaves that stands for one octave.
constexpr double kLeafOne = 65536;

int LeafReached(const PolicyTensors& tensors, int tree, const ConfigInputs& inputs) {
  int node = 0;
  while (node < kTreeNodes) {
    const int16_t* split = tensors.tree_nodes[tree][node];
    node = 2 * node + 1 + (inputs[static_cast<size_t>(split[0])] >= split[1]);
  }
  return node - kTreeNodes;
}

// Octaves by which each leaf of the tree moves. `leaves` holds the leaf of each sample, `left` the sample's
// remaining residual.
std::array<double, kTreeLeaves> Moves(const std::vector<int>& leaves, const std::vector<double>& left) {
  std::array<double, kTreeLeaves> sums{}, counts{};
  for (size_t i = 0; i < leaves.size(); ++i) {
    sums[static_cast<size_t>(leaves[i])] += left[i];
    ++counts[static_cast<size_t>(leaves[i])];
  }
  for (size_t leaf = 0; leaf < kTreeLeaves; ++leaf) sums[leaf] *= kRate / (counts[leaf] + kTrust);
  return sums;
}

}  // namespace

ConfigNetworks NetworksOf(const PolicyTensors& t) {
  const int32_t* bits = t.config.fraction_bits;
  ConfigNetworks networks;
  networks.weights_1 = Dequantised(t.config_weights_1, {kEnsemble, kConfigHidden, kConfigInputs}, bits[0]);
  networks.bias_1 = Dequantised(t.config_bias_1, {kEnsemble, kConfigHidden}, kTokenFractionBits + bits[0]);
  networks.weights_2 = Dequantised(t.config_weights_2, {kEnsemble, kConfigHidden, kConfigHidden}, bits[1]);
  networks.bias_2 =
      Dequantised(t.config_bias_2, {kEnsemble, kConfigHidden}, kActivationFractionBits + bits[1]);
  networks.weights_3 = Dequantised(t.config_weights_3, {kEnsemble, kConfigHidden}, bits[2]);
  networks.bias_3 = Dequantised(t.config_bias_3, {kEnsemble}, kActivationFractionBits + bits[2]);
  for (at::Tensor& parameter : networks.parameters()) parameter.requires_grad_(true);
  return networks;
}

ConfigTrainingSettings FineTuningSettings(uint64_t seed) {
  return {.seed = seed, .iterations = 300, .learning_rate = 2e-3};
}

void RefreshLeaves(const std::vector<ConfigSample>& samples, PolicyTensors& t) {
  std::vector<double> left;
  for (const ConfigSample& sample : samples)
    left.push_back(sample.residual - PredictTreeResidual(t, sample.inputs) / kLeafOne);
  std::vector<int> leaves(samples.size());
  for (int tree = 0; tree < t.trees.count; ++tree) {
    for (size_t i = 0; i < samples.size(); ++i) leaves[i] = LeafReached(t, tree, samples[i].inputs);
    const auto moves = Moves(leaves, left);
    for (size_t leaf = 0; leaf < kTreeLeaves; ++leaf) {
      const double moved = t.tree_leaves[tree][leaf] + std::nearbyint(moves[leaf] * kLeafOne);
      t.tree_leaves[tree][leaf] =
          static_cast<int32_t>(std::clamp<double>(moved, -kTreeLeafLimit, kTreeLeafLimit));
    }
    for (size_t i = 0; i < samples.size(); ++i) left[i] -= moves[static_cast<size_t>(leaves[i])];
  }
}

}  // namespace dynamiccl::agents
