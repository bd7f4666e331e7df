// SPDX-License-Identifier: Apache-2.0
#include "src/policy/effect_inference.h"

#include <cmath>
#include <numbers>

#include "src/policy/small_network.h"

namespace dynamiccl {
namespace {

// Natural logarithm that one unit of an output stands for.
constexpr double kUnit = std::numbers::ln2 / 65536;

// Returns true for an input that is 0 if the subject does not state it. In every other input 0 is an answer,
// such as "not Tree" or "one node".
bool MayBeUnknown(EffectFeature input) {
  using F = EffectFeature;
  return input == F::kBytes || (input >= F::kIntraLatency && input <= F::kMemory);
}

// Variance of the networks' outputs around their mean.
double SpreadOf(const EffectOutputs& outputs, double mean) {
  double squares = 0;
  for (const int32_t output : outputs) squares += (output - mean) * (output - mean);
  return squares / (kEnsemble - 1);
}

}  // namespace

EffectOutputs PredictEffects(const PolicyTensors& tensors, const EffectInputs& inputs) {
  EffectOutputs outputs;
  for (int network = 0; network < kEnsemble; ++network)
    outputs[static_cast<size_t>(network)] = EffectNetworkOf(tensors, network).Output(inputs.data());
  return outputs;
}

bool KeepKnownInputs(const PolicyTensors& tensors, EffectInputs& inputs) {
  for (size_t i = 0; i < kEffectInputs; ++i) {
    const int16_t least = tensors.effect_domain_min[i], most = tensors.effect_domain_max[i];
    if (least == 0 && most == 0 && MayBeUnknown(static_cast<EffectFeature>(i))) inputs[i] = 0;
    if (inputs[i] < least || inputs[i] > most) return false;
  }
  return true;
}

std::optional<PredictedEffect> PredictEffect(const PolicyTensors& tensors, const EffectSubject& subject) {
  if (tensors.effect.count == 0) return std::nullopt;
  EffectInputs inputs = EffectFeaturesOf(subject);
  if (!KeepKnownInputs(tensors, inputs)) return std::nullopt;
  const EffectOutputs outputs = PredictEffects(tensors, inputs);
  const double mean = (double{1} * outputs[0] + outputs[1] + outputs[2]) / kEnsemble;
  const double error = tensors.effect.error;
  return PredictedEffect{mean * kUnit, std::sqrt(error * error + SpreadOf(outputs, mean)) * kUnit};
}

}  // namespace dynamiccl
