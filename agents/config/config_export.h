// SPDX-License-Identifier: Apache-2.0
// The config ensemble as integers, with the box of its training.
#pragma once

#include <vector>

#include "agents/config/config_training.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// As ExportTrigger; besides, the gate and the domain.
// The gate is 3 %, or more where noise of the samples' repeats makes two equal configs look farther apart.
Status ExportConfig(const ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                    PolicyTensors& tensors);

// 128 of the samples' inputs, evenly spread.
void FillGoldenFeatures(const std::vector<ConfigSample>& samples, PolicyTensors& tensors);

// Float networks against the integers of the same policy, over keys: the share with the same choice, gate and
// trees included; the share where both put the same config first by mean before any gate, where near-ties
// count; and the mean difference of predictions.
struct ConfigAgreement {
  double choice = 1;
  double cheapest = 1;
  double difference_octaves = 0;
};
ConfigAgreement CompareConfig(const ConfigNetworks& networks, const PolicyTensors& tensors,
                              const std::vector<SweptKey>& keys);

}  // namespace dynamiccl::agents
