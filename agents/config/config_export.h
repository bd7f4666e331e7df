// SPDX-License-Identifier: Apache-2.0
// Converts the config ensemble to integers, together with the domain of its training.
#pragma once

#include <vector>

#include "agents/config/config_training.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// Quantises the networks, and fills domain and gate. kInternal if no scale lets the weights fit into 16 bits
// and every sum into 32.
//
// The domain is the box that contains all inputs of the samples. The gate is the smallest predicted gain for
// which the agent deviates from NCCL. It is 3 %, or more if the noise of the samples' repeats makes equal
// configurations look further apart.
Status ExportConfig(const ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                    PolicyTensors& tensors);

// Fills the golden inputs with kGoldenPerAgent of the samples' inputs, evenly spread.
void FillGoldenFeatures(const std::vector<ConfigSample>& samples, PolicyTensors& tensors);

// Compares float networks with the integers of the same policy, over keys.
struct ConfigAgreement {
  // Share of keys with the same choice, gate and trees included.
  double choice = 1;
  // Share of keys for which both rank the same configuration first by mean, before any gate. Near-ties count
  // as different.
  double cheapest = 1;
  // Mean absolute difference of the predictions, in octaves.
  double difference_octaves = 0;
};
// Compares all keys. Without keys every share is 1.
ConfigAgreement CompareConfig(const ConfigNetworks& networks, const PolicyTensors& tensors,
                              const std::vector<SweptKey>& keys);

}  // namespace dynamiccl::agents
