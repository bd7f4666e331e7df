// SPDX-License-Identifier: Apache-2.0
// Trains the config agent: three small networks that predict log2(measured time / the cost model's cost) of
// an action. The spread of the three shows how far their mean can be trusted (deep ensembles:
// Lakshminarayanan et al., NeurIPS 2017).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "agents/config/config_sample.h"
#include "agents/training_progress.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The ensemble in fp32; each network has two hidden layers. `inputs` and `hidden` stand for the numbers of
// inputs and of units in a layer: kConfigInputs and kConfigHidden for times of calls.
struct ConfigNetworks {
  // Shapes: weights [kEnsemble, hidden, inputs], bias [kEnsemble, hidden].
  at::Tensor weights_1, bias_1;
  // Shapes: weights [kEnsemble, hidden, hidden], bias [kEnsemble, hidden].
  at::Tensor weights_2, bias_2;
  // Shapes: weights [kEnsemble, hidden], bias [kEnsemble].
  at::Tensor weights_3, bias_3;

  // Predicts octaves, [kEnsemble, row], from inputs [row, inputs] in which 1.0 stands for the integer
  // 4096.
  at::Tensor Residuals(const at::Tensor& inputs) const;
  std::vector<at::Tensor> parameters() const;
};

// The shape of an ensemble. Only the first `used` of the inputs are ever different from 0.
struct EnsembleShape {
  int64_t inputs = kConfigInputs;
  int64_t used = kConfigFeatures;
  int64_t hidden = kConfigHidden;
};
// Returns an untrained ensemble that predicts nearly 0 for all inputs.
ConfigNetworks InitialNetworks(const EnsembleShape& shape, at::Generator& generator);
// Draws weights with an exponential distribution of mean 1, as a Bayesian bootstrap does: [kEnsemble, count].
at::Tensor BootstrapWeights(int64_t count, at::Generator& generator);

// Settings of the training.
struct ConfigTrainingSettings {
  uint64_t seed = 1;
  int iterations = 3000;
  // Approximate number of rows in a batch: whole keys are drawn until they have about this many rows.
  int batch = 2048;
  double learning_rate = 5e-3;
  // Called after each iteration. Its TrainingPosition counts the measured configurations as samples.
  TrainingObserver observer = {};
};

// Tells how well the trained ensemble fits its own samples. Errors are mean absolute values in octaves.
struct ConfigTrainingReport {
  double seconds = 0;
  // The error of the ensemble's mean against the measurement.
  double error_octaves = 0;
  // The error of the cost model against the measurement.
  double prior_octaves = 0;
  // Both errors after the mean over each key's rows is subtracted from predictions and measurements. Only
  // this part of the error decides which configuration of a key is chosen.
  double error_within_keys = 0;
  double prior_within_keys = 0;
};

// Trains an ensemble from scratch. `samples` must not be empty. Each network sees its own random weights of
// the keys (a Bayesian bootstrap: Rubin 1981), so that the networks differ where data is thin. The loss
// weighs the difference between the configurations of a key, which is all that a choice needs, ten times as
// much as the key's own level.
ConfigNetworks TrainConfig(const std::vector<ConfigSample>& samples, const ConfigTrainingSettings& settings,
                           ConfigTrainingReport* report);

// Returns the samples with each key's mean residual replaced by the one that the networks predict. Trees
// trained on them still learn the differences within a key, and predict times at the level of the networks.
std::vector<ConfigSample> AtLevelsOf(const ConfigNetworks& networks, std::vector<ConfigSample> samples);

}  // namespace dynamiccl::agents
