// SPDX-License-Identifier: Apache-2.0
// The scale of each layer starts as large as 16 bits allow and shrinks while a sum could overflow.
#include "agents/config/config_export.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "agents/quantisation.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_checks.h"

namespace dynamiccl::agents {
namespace {

// log2(1.03) with 16 fraction bits. Even on the quietest machine, the agent does not act on a predicted gain
// below 3 %.
constexpr int32_t kLeastGate = 2795;
// With 14 fraction bits, weights below 2 fit into 16 bits. FractionBits chooses fewer bits for larger
// weights.
constexpr int kMaxFractionBits = 14;

void QuantiseAll(const ConfigNetworks& networks, PolicyTensors& t) {
  const int32_t* bits = t.config.fraction_bits;
  Quantise(networks.weights_1, bits[0], Flat(t.config_weights_1));
  Quantise(networks.bias_1, kTokenFractionBits + bits[0], Flat(t.config_bias_1));
  Quantise(networks.weights_2, bits[1], Flat(t.config_weights_2));
  Quantise(networks.bias_2, kActivationFractionBits + bits[1], Flat(t.config_bias_2));
  Quantise(networks.weights_3, bits[2], Flat(t.config_weights_3));
  Quantise(networks.bias_3, kActivationFractionBits + bits[2], Flat(t.config_bias_3));
}

// Returns how far apart two configurations of equal time may be measured, in octaves: the weighted median of
// the samples' noise, times sqrt(2) for the difference of two measurements.
int32_t GateOf(const std::vector<ConfigSample>& samples) {
  std::vector<std::pair<double, double>> noises;
  double weights = 0;
  for (const ConfigSample& sample : samples) {
    noises.emplace_back(sample.noise, sample.weight);
    weights += sample.weight;
  }
  std::sort(noises.begin(), noises.end());
  double below = 0, middle = 0;
  for (const auto& [noise, weight] : noises) {
    if (below < weights / 2) middle = noise;
    below += weight;
  }
  return std::max(kLeastGate, static_cast<int32_t>(std::lround(middle * std::sqrt(2.0) * 65536)));
}

void FillDomain(const std::vector<ConfigSample>& samples, PolicyTensors& t) {
  std::copy(samples.front().inputs.begin(), samples.front().inputs.end(), t.domain_min);
  std::copy(samples.front().inputs.begin(), samples.front().inputs.end(), t.domain_max);
  for (const ConfigSample& sample : samples) {
    for (size_t i = 0; i < kConfigInputs; ++i) {
      t.domain_min[i] = std::min(t.domain_min[i], sample.inputs[i]);
      t.domain_max[i] = std::max(t.domain_max[i], sample.inputs[i]);
    }
  }
}

// The float networks' prediction for one action, converted to fixed point with 16 fraction bits. The integer
// networks return their predictions in the same scale.
Residuals FloatResiduals(const ConfigNetworks& networks, const ConfigInputs& inputs) {
  at::Tensor row = at::empty({1, kConfigInputs});
  std::transform(inputs.begin(), inputs.end(), row.data_ptr<float>(), [](int16_t v) { return v / 4096.0f; });
  const at::Tensor octaves = networks.Residuals(row);
  Residuals residuals;
  for (size_t i = 0; i < kEnsemble; ++i)
    residuals[i] = static_cast<int32_t>(std::lround(octaves.const_data_ptr<float>()[i] * 65536));
  return residuals;
}

double MeanOctaves(const Residuals& residuals) {
  return (double{1} * residuals[0] + residuals[1] + residuals[2]) / 3 / 65536;
}

// Remembers the configuration with the smallest predicted time so far. Of equal times the first one stays.
struct Leader {
  CollectiveConfig config;
  double least = HUGE_VAL;

  void Take(const ConfigAction& action, double residual) {
    const double log2 = action.prior / 65536.0 + residual;
    if (log2 >= least) return;
    least = log2;
    config = action.config;
  }
};

}  // namespace

Status ExportConfig(const ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                    PolicyTensors& t) {
  FillDomain(samples, t);
  t.config = {
      {FractionBits(networks.weights_1, kMaxFractionBits), FractionBits(networks.weights_2, kMaxFractionBits),
       FractionBits(networks.weights_3, kMaxFractionBits)},
      GateOf(samples)};
  // Repeats until no sum overflows: a layer whose sums overflow gets one fraction bit less, which halves
  // them.
  for (int layer = 0; layer >= 0;) {
    QuantiseAll(networks, t);
    layer = OverflowingConfigLayer(t);
    if (layer < 0) return {};
    if (--t.config.fraction_bits[layer] < kLeastLayerBits[layer]) break;
  }
  return MakeError(ErrorKind::kInternal,
                   "the config agent's weights are too large for 16 bits; train with another --seed");
}

void FillGoldenFeatures(const std::vector<ConfigSample>& samples, PolicyTensors& t) {
  for (size_t i = 0; i < kGoldenPerAgent; ++i) {
    const ConfigInputs& inputs = samples[i * samples.size() / kGoldenPerAgent].inputs;
    std::copy(inputs.begin(), inputs.end(), t.golden_features[i]);
  }
}

ConfigAgreement CompareConfig(const ConfigNetworks& networks, const PolicyTensors& tensors,
                              const std::vector<SweptKey>& keys) {
  const c10::AutoGradMode no_gradients(false);
  const ResidualsOf by_floats = [&](const ConfigInputs& inputs) { return FloatResiduals(networks, inputs); };
  const ResidualsOf by_integers = [&](const ConfigInputs& inputs) {
    return PredictResiduals(tensors, inputs);
  };
  ConfigAgreement sums{0, 0, 0};
  size_t actions = 0;
  for (const SweptKey& key : keys) {
    const auto choice = [&](const ResidualsOf& residuals_of) {
      return ChooseConfigBy(tensors, residuals_of, key.model, QuestionOfJobs(key.question)).config;
    };
    sums.choice += choice(by_floats) == choice(by_integers);
    const ConfigContext context(key.model, QuestionOfJobs(key.question));
    Leader of_floats, of_integers;
    for (const ConfigAction& action : context.Actions()) {
      const ConfigInputs inputs = context.Features(action);
      const double real = MeanOctaves(by_floats(inputs)), integer = MeanOctaves(by_integers(inputs));
      sums.difference_octaves += std::abs(real - integer);
      ++actions;
      of_floats.Take(action, real);
      of_integers.Take(action, integer);
    }
    sums.cheapest += of_floats.config == of_integers.config;
  }
  if (keys.empty() || actions == 0) return {};
  const auto count = static_cast<double>(keys.size());
  return {sums.choice / count, sums.cheapest / count, sums.difference_octaves / static_cast<double>(actions)};
}

}  // namespace dynamiccl::agents
