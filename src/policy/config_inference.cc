// SPDX-License-Identifier: Apache-2.0
#include "src/policy/config_inference.h"

#include <algorithm>
#include <cmath>

#include "src/policy/fixed_point.h"

namespace dynamiccl {
namespace {

struct Prediction {
  std::array<int32_t, kEnsemble> log2_cost;  // prior plus residual

  // Three sums of int32 magnitudes below 2^28: fits.
  int32_t Mean() const { return (log2_cost[0] + log2_cost[1] + log2_cost[2]) / kEnsemble; }
};

// Keeps prior plus residual far from overflow: 2^10 octaves are no time.
constexpr int32_t kResidualLimit = 1 << 26;

template <int Inputs>
void HiddenLayer(const int16_t (*weights)[Inputs], const int32_t* bias, const int16_t* inputs, int shift,
                 int16_t* outputs) {
  for (int row = 0; row < kConfigHidden; ++row) {
    const int32_t sum = Dot<Inputs>(weights[row], inputs) + bias[row];
    outputs[row] = static_cast<int16_t>(std::clamp(RoundShift(sum, shift), 0, kActivationLimit));
  }
}

int32_t PredictResidual(const PolicyTensors& tensors, int network, const ConfigInputs& inputs) {
  const ConfigScales& scales = tensors.config;
  alignas(64) int16_t first[kConfigHidden];
  alignas(64) int16_t second[kConfigHidden];
  HiddenLayer(tensors.config_weights_1[network], tensors.config_bias_1[network], inputs.data(),
              kTokenFractionBits + scales.fraction_bits[0] - kActivationFractionBits, first);
  HiddenLayer(tensors.config_weights_2[network], tensors.config_bias_2[network], first,
              scales.fraction_bits[1], second);
  const int32_t sum =
      Dot<kConfigHidden>(tensors.config_weights_3[network], second) + tensors.config_bias_3[network];
  const int32_t residual = RoundShift(sum, kActivationFractionBits + scales.fraction_bits[2] - 16);
  return std::clamp(residual, -kResidualLimit, kResidualLimit);
}

Prediction Predict(const PolicyTensors& tensors, const ConfigInputs& inputs, int32_t prior) {
  const Residuals residuals = PredictResiduals(tensors, inputs);
  Prediction prediction;
  for (size_t i = 0; i < kEnsemble; ++i) prediction.log2_cost[i] = prior + residuals[i];
  return prediction;
}

bool AllPromise(const Prediction& action, const Prediction& default_choice, int32_t gate) {
  for (size_t i = 0; i < kEnsemble; ++i) {
    if (default_choice.log2_cost[i] - action.log2_cost[i] < gate) return false;
  }
  return true;
}

}  // namespace

double ConfigChoice::predicted_microseconds() const {
  return std::exp2(predicted_log2 / 65536.0) * 1e-6;
}
double ConfigChoice::predicted_speed_up() const {
  return std::exp2(predicted_gain / 65536.0);
}

Residuals PredictResiduals(const PolicyTensors& tensors, const ConfigInputs& inputs) {
  Residuals residuals;
  for (int network = 0; network < kEnsemble; ++network) {
    residuals[static_cast<size_t>(network)] = PredictResidual(tensors, network, inputs);
  }
  return residuals;
}

int OutsideDomain(const PolicyTensors& tensors, const ConfigInputs& inputs, int first, int last) {
  for (int i = first; i < last; ++i) {
    if (inputs[static_cast<size_t>(i)] < tensors.domain_min[i]) return i;
    if (inputs[static_cast<size_t>(i)] > tensors.domain_max[i]) return i;
  }
  return -1;
}

ConfigChoice ChooseConfig(const Policy& policy, const CostModelInput& input, const ConfigQuestion& question) {
  const PolicyTensors& tensors = policy.tensors;
  const ConfigContext context(input, question);
  ConfigChoice choice;
  choice.default_config = context.default_config();
  const ConfigAction default_action = context.Price(choice.default_config);
  if (default_action.prior <= 0) return choice;
  choice.reason = ChoiceReason::kOutsideTraining;
  const ConfigInputs default_inputs = context.Features(default_action);
  if (OutsideDomain(tensors, default_inputs, 0, kConfigFeatures) >= 0) return choice;

  const Prediction default_prediction = Predict(tensors, default_inputs, default_action.prior);
  choice.reason = ChoiceReason::kNoPromise;
  choice.predicted_log2 = default_prediction.Mean();
  for (const ConfigAction& action : context.Actions()) {
    const ConfigInputs inputs = context.Features(action);
    if (OutsideDomain(tensors, inputs, kContextFeatures, kConfigFeatures) >= 0) continue;
    const Prediction prediction = Predict(tensors, inputs, action.prior);
    if (prediction.Mean() >= choice.predicted_log2) continue;
    if (!AllPromise(prediction, default_prediction, tensors.config.gate)) continue;
    choice.config = action.config;
    choice.reason = ChoiceReason::kPromised;
    choice.predicted_log2 = prediction.Mean();
  }
  choice.predicted_gain = default_prediction.Mean() - choice.predicted_log2;
  return choice;
}

}  // namespace dynamiccl
