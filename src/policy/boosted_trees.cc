// SPDX-License-Identifier: Apache-2.0
// Walks every tree from its root to a leaf and adds up the leaves. Trees are complete binary trees in an
// array: the children of node i are 2i + 1 and 2i + 2, and the leaves follow the inner nodes.
#include "src/policy/boosted_trees.h"

namespace dynamiccl {

int32_t PredictTreeResidual(const PolicyTensors& tensors, const ConfigInputs& inputs) {
  int32_t sum = tensors.trees.base;
  for (int tree = 0; tree < tensors.trees.count; ++tree) {
    int node = 0;
    for (int level = 0; level < kTreeDepth; ++level) {
      const int16_t* split = tensors.tree_nodes[tree][node];
      node = 2 * node + 1 + (inputs[static_cast<size_t>(split[0])] >= split[1]);
    }
    sum += tensors.tree_leaves[tree][node - kTreeNodes];
  }
  return sum;
}

}  // namespace dynamiccl
