// SPDX-License-Identifier: Apache-2.0
// Predicts how a config changes the time of a training step. All arithmetic is in integers. Policies that
// learnt from no experiments (PolicyTensors::effect.count is 0) predict nothing. Any thread may call these
// functions.
#pragma once

#include <array>
#include <optional>

#include "src/policy/effect_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// The networks' predictions of log2(step's time with the config / with NCCL's choice), with 16 fraction bits.
using EffectOutputs = std::array<int32_t, kEnsemble>;
EffectOutputs PredictEffects(const PolicyTensors& tensors, const EffectInputs& inputs);

// A prediction: natural logarithm of the ratio of the step's times, and its standard error. The error
// consists of the error on fabrics that training left out, and of the networks' disagreement.
struct PredictedEffect {
  double mean = 0;
  double error = 0;
};

// Returns the prediction for `subject`. An input that was unknown in all training data is taken as unknown.
// Returns nothing if the policy predicts no effects, or if another input lies outside of what training saw,
// such as an algorithm or a number of nodes that occurred in no experiment. Jobs must not call it for every
// collective.
std::optional<PredictedEffect> PredictEffect(const PolicyTensors& tensors, const EffectSubject& subject);

// Sets to 0 the inputs that may be unknown (effect_features.h) and were unknown in all training data. Returns
// false if another input lies outside of what training saw.
bool KeepKnownInputs(const PolicyTensors& tensors, EffectInputs& inputs);

}  // namespace dynamiccl
