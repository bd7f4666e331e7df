// SPDX-License-Identifier: Apache-2.0
// Trains the part of the config agent that predicts what a config does to a training step: three small
// networks, as for times of calls (config_training.h).
#pragma once

#include <optional>
#include <vector>

#include "agents/config/config_training.h"
#include "agents/config/effect_sample.h"
#include "src/base/status.h"
#include "src/policy/effect_inference.h"

namespace dynamiccl::agents {

// The networks of effects in fp32. Their shapes have kEffectInputs inputs and kEffectHidden units.
using EffectNetworks = ConfigNetworks;

// Settings of the training.
struct EffectTrainingSettings {
  uint64_t seed = 1;
  int iterations = 400;
  double learning_rate = 5e-3;
};

// Trains on all samples, which must not be empty. Each network sees its own random weights of the fabrics, so
// that the networks differ where only few fabrics have samples.
EffectNetworks TrainEffects(const std::vector<EffectSample>& samples, const EffectTrainingSettings& settings);

// A sample's effect as predicted by networks that saw no sample of its fabric, in octaves. `known` is false
// if an input lies outside of the inputs that these networks saw.
struct HeldOutEffect {
  double octaves = 0;
  bool known = false;
};

// Leaves one fabric out after the other: trains on the samples of the other fabrics and predicts those of the
// fabric that was left out. Returns a prediction for each sample. With a single fabric no prediction is
// known.
std::vector<HeldOutEffect> PredictHeldOut(const std::vector<EffectSample>& samples,
                                          const EffectTrainingSettings& settings);

// How far predictions are off on fabrics that were left out. Errors are standard errors in octaves, weighted
// as in training, without the part that the measurements' own errors explain.
struct EffectErrors {
  double predicted = 0;  // error of the networks
  double nothing = 0;    // error of the assumption that no config changes a step
  size_t fabrics = 0;
  size_t judged = 0;  // samples with a known prediction
};
EffectErrors ErrorsOf(const std::vector<EffectSample>& samples, const std::vector<HeldOutEffect>& predicted);

// Trains on the samples as jobs ask (AsJobsAsk), quantises the networks, and fills all of the policy's
// tensors about effects except the golden outputs. A prediction states the error that was measured on
// left-out fabrics, or 10 % if there is a single fabric. Returns kInternal if the weights do not fit into 16
// bits.
Result<EffectErrors> AddEffects(const std::vector<EffectSample>& measured,
                                const EffectTrainingSettings& settings, PolicyTensors& tensors);

}  // namespace dynamiccl::agents
