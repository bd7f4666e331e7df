// SPDX-License-Identifier: Apache-2.0
// Converts the config agent's float networks to integers and stores the domain that their training covered.
#pragma once

#include <vector>

#include "agents/config/config_training.h"
#include "src/base/status.h"

namespace dynamiccl::agents {

// Quantises the networks, and fills domain and gate. Returns kInternal if no scale lets the weights fit into
// 16 bits and every sum into 32.
//
// The domain is the box that contains all inputs of the samples. The gate is the smallest predicted gain for
// which the agent deviates from NCCL. It is 3 %, or more if the noise of the samples' repeats makes equal
// configurations look further apart.
Status ExportConfig(const ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                    PolicyTensors& tensors);

// Chooses kGoldenPerAgent samples, evenly spread, and stores their inputs as the inputs of the policy's
// golden vectors (known inputs with known outputs, with which a job checks its arithmetic).
void FillGoldenFeatures(const std::vector<ConfigSample>& samples, PolicyTensors& tensors);

// Tells how well the float networks and the integers of one policy agree, as averages over keys.
struct ConfigAgreement {
  // Share of keys for which floats and integers make the same choice, with gate and trees.
  double choice = 1;
  // Share of keys for which floats and integers predict the same configuration as fastest, by the mean of the
  // networks and before the gate. Two configurations with nearly equal predictions can count as different.
  double cheapest = 1;
  // Mean absolute difference between the predictions of floats and integers, in octaves.
  double difference_octaves = 0;
};
// Compares the float networks with the integer ones on all keys. Without keys, every share above is 1.
ConfigAgreement CompareConfig(const ConfigNetworks& networks, const PolicyTensors& tensors,
                              const std::vector<SweptKey>& keys);

}  // namespace dynamiccl::agents
