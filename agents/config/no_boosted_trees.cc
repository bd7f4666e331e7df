// SPDX-License-Identifier: Apache-2.0
// Replaces boosted_trees.cc in builds without XGBoost.
#include "agents/config/boosted_trees.h"

namespace dynamiccl::agents {

bool CanTrainTrees() {
  return false;
}

std::string TreeLibrary() {
  return "no XGBoost";
}

Status TrainTrees(const std::vector<ConfigSample>&, const TreeTrainingSettings&, PolicyTensors&) {
  return WithHint(MakeError(ErrorKind::kUnsupported, "this build cannot train trees"),
                  "install libxgboost-dev and build again");
}

}  // namespace dynamiccl::agents
