// SPDX-License-Identifier: Apache-2.0
// Continues the training of a policy's config agent on the sweep of a new site.
#pragma once

#include "agents/config/config_training.h"

namespace dynamiccl::agents {

// The networks of a policy in fp32, with exactly the values that the policy's integers represent.
ConfigNetworks NetworksOf(const PolicyTensors& tensors);

// Trains `networks` further, in place. `samples` must not be empty.
void ContinueTraining(ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                      const ConfigTrainingSettings& settings, ConfigTrainingReport* report);

// Fewer iterations and a lower rate than from scratch: a few hundred samples then move a trained ensemble
// without destroying what it knows.
ConfigTrainingSettings FineTuningSettings(uint64_t seed);

// Moves the leaves towards the remaining residuals of the samples that reach them, tree after tree. The fewer
// samples reach a leaf, the less it moves. The splits stay.
void RefreshLeaves(const std::vector<ConfigSample>& samples, PolicyTensors& tensors);

}  // namespace dynamiccl::agents
