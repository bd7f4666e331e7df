// SPDX-License-Identifier: Apache-2.0
// Trains the config agent: three small networks that predict log2(measured time / cost model's cost) of an
// action.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "agents/config/config_sample.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

struct ConfigNetworks {
  at::Tensor weights_1, bias_1;  // [kEnsemble, kConfigHidden, kConfigInputs], [kEnsemble, kConfigHidden]
  at::Tensor weights_2, bias_2;  // [kEnsemble, kConfigHidden, kConfigHidden], ...
  at::Tensor weights_3, bias_3;  // [kEnsemble, kConfigHidden], [kEnsemble]

  // inputs float [row, kConfigInputs], 1.0 is 4096; residuals [kEnsemble, row].
  at::Tensor Residuals(const at::Tensor& inputs) const;
  std::vector<at::Tensor> parameters() const;
};

struct ConfigTrainingSettings {
  uint64_t seed = 1;
  int iterations = 3000;
  int batch = 2048;  // rows: so many keys are drawn as have about that number
  double learning_rate = 5e-3;
};

struct ConfigTrainingReport {
  double seconds = 0;
  double error_octaves = 0;  // mean |predicted - measured| of the ensemble's mean, on the samples
  double prior_octaves = 0;  // mean |measured - cost model| of the same
  // The same two once each key's mean is taken from what is predicted and from what was measured: what is
  // left decides between its configs.
  double error_within_keys = 0;
  double prior_within_keys = 0;
};

// Each network sees its own weights of the keys (a Bayesian bootstrap), so that they differ where data is
// thin. What is learned first is how the configs of a key differ, which is all that a choice needs; how long
// the key takes at all counts a tenth.
ConfigNetworks TrainConfig(const std::vector<ConfigSample>& samples, const ConfigTrainingSettings& settings,
                           ConfigTrainingReport* report);

// The samples with the mean residual of each key moved to what the networks predict for it: what trees beside
// them learn from, so that they too learn what differs within keys, and both say about the same of a time.
std::vector<ConfigSample> AtLevelsOf(const ConfigNetworks& networks, std::vector<ConfigSample> samples);

}  // namespace dynamiccl::agents
