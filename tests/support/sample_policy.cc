// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sample_policy.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "src/policy/policy_checks.h"

namespace dynamiccl::test {
namespace {

void FillTables(PolicyTensors& t) {
  for (int i = 0; i < kTableEntries; ++i) {
    const double x = (i - kTableEntries / 2) / double{1 << kTableFractionBits};
    t.sigmoid_table[i] = static_cast<int16_t>(std::min(32767.0, std::round(32768 / (1 + std::exp(-x)))));
    t.tanh_table[i] = static_cast<int16_t>(std::round(kTokenOne * std::tanh(x)));
  }
}

void FillScales(PolicyTensors& t) {
  t.structure = {11, 11, 4096, 4096, 4096, 8, 1 << 16, 256};
  t.config = {{12, 12, 12}, 2795};  // 2795 / 65536 = log2(1.03)
  std::fill_n(t.domain_min, kConfigInputs, int16_t{-32768});
  std::fill_n(t.domain_max, kConfigInputs, int16_t{32767});
}

template <typename T>
void FillRandom(T* first, size_t count, int limit, std::mt19937_64& random) {
  for (size_t i = 0; i < count; ++i) {
    first[i] = static_cast<T>(static_cast<int64_t>(random() % static_cast<uint64_t>(2 * limit + 1)) - limit);
  }
}

template <typename Array>
void FillRandom(Array& array, int limit, std::mt19937_64& random) {
  using Element = std::remove_all_extents_t<Array>;
  FillRandom(reinterpret_cast<Element*>(&array), sizeof(Array) / sizeof(Element), limit, random);
}

// Uses one tree less than the maximum, so that the last tree is unused.
void FillTrees(PolicyTensors& t, std::mt19937_64& random) {
  t.trees = {kTrees - 1, -70000};
  for (auto& tree : t.tree_nodes) {
    for (auto& node : tree) {
      node[0] = static_cast<int16_t>(random() % kConfigFeatures);
      FillRandom(&node[1], 1, 32767, random);
    }
  }
  FillRandom(t.tree_leaves, 8000, random);
}

void FillGoldenInputs(PolicyTensors& t, std::mt19937_64& random) {
  for (int i = 0; i < kGoldenPerAgent; ++i) {
    for (int f = 0; f < kTokenFeatures; ++f) FillRandom(&t.golden_tokens[i][f], 1, kTokenLimits[f], random);
    for (int f = 0; f < kConfigFeatures; ++f)
      FillRandom(&t.golden_features[i][f], 1, kConfigLimits[f], random);
  }
}

ConfigFeature FlagOf(Algorithm algorithm) {
  if (algorithm == Algorithm::kTree) return ConfigFeature::kTree;
  if (algorithm == Algorithm::kRing) return ConfigFeature::kRing;
  return algorithm == Algorithm::kPat ? ConfigFeature::kPat : ConfigFeature::kOtherAlgorithm;
}

ConfigFeature FlagOf(Protocol protocol) {
  if (protocol == Protocol::kLL) return ConfigFeature::kLL;
  return protocol == Protocol::kLL128 ? ConfigFeature::kLL128 : ConfigFeature::kSimple;
}

EffectFeature FlagOf(const ExpectedOfConfig& of, int which) {
  using F = EffectFeature;
  if (which == 0) return of.algorithm == Algorithm::kTree ? F::kTree : F::kRing;
  if (which == 1)
    return of.protocol == Protocol::kLL ? F::kLL : of.protocol == Protocol::kLL128 ? F::kLL128 : F::kSimple;
  return of.channels == ChannelCount::kOne   ? F::kOneChannel
         : of.channels == ChannelCount::kFew ? F::kFewChannels
                                             : F::kManyChannels;
}

// Makes the domain of effects contain all inputs.
void FillEffectDomain(PolicyTensors& t) {
  for (int i = 0; i < kEffectFeatures; ++i) {
    t.effect_domain_min[i] = static_cast<int16_t>(-kEffectLimits[i]);
    t.effect_domain_max[i] = kEffectLimits[i];
  }
}

}  // namespace

std::unique_ptr<Policy> MakeRandomPolicy(uint64_t seed) {
  auto policy = std::make_unique<Policy>();
  PolicyTensors& t = policy->tensors;
  std::mt19937_64 random(seed);
  FillTables(t);
  FillScales(t);
  FillRandom(t.gate_weights, 3000, random);
  FillRandom(t.gate_bias, 1 << 22, random);
  FillRandom(t.head_weights, 3000, random);
  FillRandom(t.head_bias, 1 << 22, random);
  FillRandom(t.config_weights_1, 2000, random);
  FillRandom(t.config_bias_1, 1 << 22, random);
  FillRandom(t.config_weights_2, 1500, random);
  FillRandom(t.config_bias_2, 1 << 20, random);
  FillRandom(t.config_weights_3, 1500, random);
  FillRandom(t.config_bias_3, 1 << 20, random);
  FillTrees(t, random);
  FillGoldenInputs(t, random);
  ComputeGoldenOutputs(t);
  policy->provenance = "random weights for tests, seed " + std::to_string(seed);
  policy->training_data_id = seed;
  return policy;
}

std::unique_ptr<Policy> MakeRandomPolicyWithEffects(uint64_t seed) {
  auto policy = MakeRandomPolicy(seed);
  PolicyTensors& t = policy->tensors;
  std::mt19937_64 random(seed + 1000);
  FillRandom(t.effect_weights_1, 2000, random);
  FillRandom(t.effect_bias_1, 1 << 22, random);
  FillRandom(t.effect_weights_2, 1500, random);
  FillRandom(t.effect_bias_2, 1 << 20, random);
  FillRandom(t.effect_weights_3, 1500, random);
  FillRandom(t.effect_bias_3, 1 << 20, random);
  t.effect = {{12, 12, 12}, 5000, 77};
  FillEffectDomain(t);
  for (int i = 0; i < kEffectFeatures; ++i) {
    for (auto& golden : t.golden_effect_features) FillRandom(&golden[i], 1, kEffectLimits[i], random);
  }
  ComputeGoldenOutputs(t);
  return policy;
}

std::unique_ptr<Policy> MakePolicyThatExpects(const ExpectedOfConfig& expected) {
  auto policy = std::make_unique<Policy>();
  PolicyTensors& t = policy->tensors;
  FillTables(t);
  FillScales(t);
  constexpr int kOne = 1 << 12;
  for (int network = 0; network < kEnsemble; ++network) {
    // The first neuron of each layer is 1 if all three flags of the config are set.
    for (int which = 0; which < 3; ++which)
      t.effect_weights_1[network][0][static_cast<size_t>(FlagOf(expected, which))] = kOne;
    t.effect_bias_1[network][0] = -2 * kOne * kOne;
    t.effect_weights_2[network][0][0] = kOne;
    t.effect_weights_3[network][0] = static_cast<int16_t>(std::lround(expected.octaves * kOne));
  }
  t.effect = {{12, 12, 12}, static_cast<int32_t>(std::lround(expected.error * 65536)), 1};
  FillEffectDomain(t);
  ComputeGoldenOutputs(t);
  policy->provenance = "expects an effect of one config, for tests";
  return policy;
}

std::unique_ptr<Policy> MakePolicyThatPrefers(Algorithm algorithm, Protocol protocol) {
  auto policy = std::make_unique<Policy>();
  PolicyTensors& t = policy->tensors;
  FillTables(t);
  FillScales(t);
  constexpr int kOne = 1 << 12;
  for (int network = 0; network < kEnsemble; ++network) {
    // The first neuron of each layer is 1 if both flags are set. Four octaves are a factor of 16.
    t.config_weights_1[network][0][static_cast<size_t>(FlagOf(algorithm))] = kOne;
    t.config_weights_1[network][0][static_cast<size_t>(FlagOf(protocol))] = kOne;
    t.config_bias_1[network][0] = -kOne * kOne;
    t.config_weights_2[network][0][0] = kOne;
    t.config_weights_3[network][0] = -4 * kOne;
  }
  ComputeGoldenOutputs(t);
  policy->provenance = "prefers one config, for tests";
  return policy;
}

}  // namespace dynamiccl::test
