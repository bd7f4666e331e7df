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
  int iterations = 1500;
  int batch = 2048;  // rows; all of them where there are fewer
  double learning_rate = 5e-3;
};

struct ConfigTrainingReport {
  double seconds = 0;
  double error_octaves = 0;  // mean |predicted - measured| of the ensemble's mean, on the samples
  double prior_octaves = 0;  // mean |measured - cost model| of the same
};

// Each network sees its own weights of the samples (a Bayesian bootstrap), so that they differ where data is
// thin.
ConfigNetworks TrainConfig(const std::vector<ConfigSample>& samples, const ConfigTrainingSettings& settings,
                           ConfigTrainingReport* report);

}  // namespace dynamiccl::agents
