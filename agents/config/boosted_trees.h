// SPDX-License-Identifier: Apache-2.0
// Trains the config agent's gradient-boosted trees with XGBoost (Chen and Guestrin, KDD 2016) and converts
// them to the policy's form: complete trees of depth kTreeDepth. A build without XGBoost has
// no_boosted_trees.cc instead, and its policies contain networks only.
#pragma once

#include <string>
#include <vector>

#include "agents/config/config_sample.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Settings with which TrainTrees trains the boosted trees.
struct TreeTrainingSettings {
  uint64_t seed = 1;
  int trees = kTrees;
  // Share of each tree's correction that is applied (XGBoost's eta).
  double learning_rate = 0.1;
};

// True if this build can train trees.
bool CanTrainTrees();
// Returns name and version of the library that trains the trees; "no XGBoost" in a build without it.
std::string TreeLibrary();

// Fills trees, tree_nodes and tree_leaves of `tensors`. Equal samples and seeds give equal trees. Returns
// kUnsupported in a build without XGBoost, and kInternal with XGBoost's own message if XGBoost fails.
Status TrainTrees(const std::vector<ConfigSample>& samples, const TreeTrainingSettings& settings,
                  PolicyTensors& tensors);

}  // namespace dynamiccl::agents
