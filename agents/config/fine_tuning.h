// SPDX-License-Identifier: Apache-2.0
// Goes on with the training of a policy's config agent on the sweep of a new site.
#pragma once

#include "agents/config/config_training.h"

namespace dynamiccl::agents {

// The networks of a policy as floats, which its integers stand for exactly.
ConfigNetworks NetworksOf(const PolicyTensors& tensors);

// Trains `networks` further, in place.
void ContinueTraining(ConfigNetworks& networks, const std::vector<ConfigSample>& samples,
                      const ConfigTrainingSettings& settings, ConfigTrainingReport* report);

// Settings with which a few hundred samples move a trained ensemble without tearing it.
ConfigTrainingSettings FineTuningSettings(uint64_t seed);

// Leaves of the trees that samples reach move towards what is left of their residuals, tree after tree, the
// less the fewer samples reach them. The splits stay.
void RefreshLeaves(const std::vector<ConfigSample>& samples, PolicyTensors& tensors);

}  // namespace dynamiccl::agents
