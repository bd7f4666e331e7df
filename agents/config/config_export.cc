// SPDX-License-Identifier: Apache-2.0
#include "agents/config/config_export.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "agents/quantisation.h"
#include "src/policy/config_inference.h"
#include "src/policy/policy_checks.h"

namespace dynamiccl::agents {
namespace {

// log2(1.03) with 16 fraction bits: below 3 % a promise is within the noise of a sweep.
constexpr int32_t kGate = 2795;
constexpr int kMostFractionBits = 14;
// The residual has 16 fraction bits, activations 10: the last layer needs 7 more at least.
constexpr int kLeastLastBits = 7;

void QuantiseAll(const ConfigNetworks& networks, PolicyTensors& t) {
  const int32_t* bits = t.config.fraction_bits;
  Quantise(networks.weights_1, bits[0], Flat(t.config_weights_1));
  Quantise(networks.bias_1, kTokenFractionBits + bits[0], Flat(t.config_bias_1));
  Quantise(networks.weights_2, bits[1], Flat(t.config_weights_2));
  Quantise(networks.bias_2, kActivationFractionBits + bits[1], Flat(t.config_bias_2));
  Quantise(networks.weights_3, bits[2], Flat(t.config_weights_3));
  Quantise(networks.bias_3, kActivationFractionBits + bits[2], Flat(t.config_bias_3));
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

}  // namespace

Status ExportConfig(const ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                    PolicyTensors& t) {
  FillDomain(samples, t);
  t.config = {{FractionBits(networks.weights_1, kMostFractionBits),
               FractionBits(networks.weights_2, kMostFractionBits),
               FractionBits(networks.weights_3, kMostFractionBits)},
              kGate};
  // Fewer fraction bits make sums smaller; the three layers go down together, which costs at most a bit where
  // one would do.
  while (t.config.fraction_bits[2] >= kLeastLastBits) {
    QuantiseAll(networks, t);
    if (SumsFit(t, Agent::kConfig)) return {};
    for (int32_t& bits : t.config.fraction_bits) --bits;
    if (*std::min_element(t.config.fraction_bits, t.config.fraction_bits + 3) < 1) break;
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
  double difference = 0;
  size_t same = 0, actions = 0;
  for (const SweptKey& key : keys) {
    const ConfigContext context(key.model, key.question);
    double best_real = HUGE_VAL, best_integer = HUGE_VAL;
    bool agree = true;
    for (const ConfigAction& action : context.Actions()) {
      const ConfigInputs inputs = context.Features(action);
      at::Tensor row = at::empty({1, kConfigInputs});
      std::transform(inputs.begin(), inputs.end(), row.data_ptr<float>(),
                     [](int16_t v) { return v / 4096.0f; });
      const Residuals residuals = PredictResiduals(tensors, inputs);
      const double real = networks.Residuals(row).mean().item<double>();
      const double integer = (double{1} * residuals[0] + residuals[1] + residuals[2]) / 3 / 65536;
      difference += std::abs(real - integer);
      ++actions;
      const double prior = action.prior / 65536.0;
      // Both networks agree so far when the same action leads in both.
      const bool leads_real = prior + real < best_real, leads_integer = prior + integer < best_integer;
      if (leads_real || leads_integer) agree = leads_real == leads_integer;
      best_real = std::min(best_real, prior + real);
      best_integer = std::min(best_integer, prior + integer);
    }
    same += agree;
  }
  if (keys.empty() || actions == 0) return {};
  return {static_cast<double>(same) / static_cast<double>(keys.size()),
          difference / static_cast<double>(actions)};
}

}  // namespace dynamiccl::agents
