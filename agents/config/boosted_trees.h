// SPDX-License-Identifier: Apache-2.0
// Trains the config agent's trees with XGBoost and cuts them into the policy's form. A build without XGBoost
// has no_boosted_trees.cc instead: its policies are of networks alone.
#pragma once

#include <vector>

#include "agents/config/config_sample.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

struct TreeTrainingSettings {
  uint64_t seed = 1;
  int trees = kTrees;
  double learning_rate = 0.1;
};

// Whether this build can train trees.
bool CanTrainTrees();

// Fills trees, tree_nodes and tree_leaves. Equal samples and seeds give equal trees. kUnsupported without
// XGBoost, kInternal with XGBoost's own words.
Status TrainTrees(const std::vector<ConfigSample>& samples, const TreeTrainingSettings& settings,
                  PolicyTensors& tensors);

}  // namespace dynamiccl::agents
