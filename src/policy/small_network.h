// SPDX-License-Identifier: Apache-2.0
// A network with two hidden layers and one output in int16 with int32 sums, as the config agent has them.
// docs/formats/policy_file.md states the arithmetic. Private to src/policy.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/fingerprint/call_token.h"
#include "src/policy/fixed_point.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Limit of an output, in octaves with 16 fraction bits (2^10 octaves). It keeps sums with an output far from
// overflow. No real prediction is off by that much.
inline constexpr int32_t kOutputLimit = 1 << 26;

// The weights of one network, which belong to a PolicyTensors. `bits` has the fraction bits of the three
// layers' weights.
template <int Inputs, int Hidden>
struct SmallNetwork {
  const int16_t (*weights_1)[Inputs];
  const int32_t* bias_1;
  const int16_t (*weights_2)[Hidden];
  const int32_t* bias_2;
  const int16_t* weights_3;
  int32_t bias_3;
  const int32_t* bits;

  // Number of bits by which the sums of the three layers are shifted to the right.
  int shift(int layer) const {
    if (layer == 0) return kTokenFractionBits + bits[0] - kActivationFractionBits;
    return layer == 1 ? bits[1] : kActivationFractionBits + bits[2] - 16;
  }

  // Returns the output for `inputs`, an array of `Inputs` numbers, with 16 fraction bits.
  int32_t Output(const int16_t* inputs) const {
    alignas(64) int16_t first[Hidden];
    alignas(64) int16_t second[Hidden];
    HiddenLayer(weights_1, bias_1, inputs, shift(0), first);
    HiddenLayer(weights_2, bias_2, first, shift(1), second);
    return std::clamp(RoundShift(Dot<Hidden>(weights_3, second) + bias_3, shift(2)), -kOutputLimit,
                      kOutputLimit);
  }

 private:
  // Computes one layer with a clipped ReLU. Outputs lie between 0 and kActivationLimit.
  template <int Columns>
  static void HiddenLayer(const int16_t (*weights)[Columns], const int32_t* bias, const int16_t* inputs,
                          int shift, int16_t* outputs) {
    for (int row = 0; row < Hidden; ++row) {
      const int32_t sum = Dot<Columns>(weights[row], inputs) + bias[row];
      outputs[row] = static_cast<int16_t>(std::clamp(RoundShift(sum, shift), 0, kActivationLimit));
    }
  }
};

// Returns network number `network` of the config agent, which predicts times of calls.
inline SmallNetwork<kConfigInputs, kConfigHidden> ConfigNetworkOf(const PolicyTensors& t, int network) {
  return {t.config_weights_1[network], t.config_bias_1[network],    t.config_weights_2[network],
          t.config_bias_2[network],    t.config_weights_3[network], t.config_bias_3[network],
          t.config.fraction_bits};
}

// Returns network number `network` of those that predict effects on steps.
inline SmallNetwork<kEffectInputs, kEffectHidden> EffectNetworkOf(const PolicyTensors& t, int network) {
  return {t.effect_weights_1[network], t.effect_bias_1[network],    t.effect_weights_2[network],
          t.effect_bias_2[network],    t.effect_weights_3[network], t.effect_bias_3[network],
          t.effect.fraction_bits};
}

}  // namespace dynamiccl
