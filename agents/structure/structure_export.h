// SPDX-License-Identifier: Apache-2.0
// Converts the structure LSTM to integers.
#pragma once

#include <vector>

#include "agents/structure/structure_training.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Fills weights, tables of sigmoid and tanh, and thresholds. Weights get as many fraction bits as fit into 16
// bits and keep every sum below 2^31. Returns kInternal if no scale achieves that. The margins and the
// surprise threshold are preliminary; CalibrateStructure replaces them.
Status ExportStructure(const FloatStructureNetwork& network, PolicyTensors& tensors);

// Returns the float network whose integers the policy has, for a training that goes on from it.
FloatStructureNetwork StructureNetworkOf(const PolicyTensors& tensors);

// Fills the golden tokens with the first calls of eight sequences. If there are fewer sequences, they are
// repeated. `sequences` must not be empty.
void FillGoldenTokens(const std::vector<CallSequence>& sequences, PolicyTensors& tensors);

// For each head, the share of calls for which the float network and the integers of a job, rounded cells
// included, choose the same class. Only calls with a target count.
struct StructureAgreement {
  double role = 1, phase = 1, stage = 1;
};
// Compares the first `length` calls of each sequence.
StructureAgreement CompareStructure(const FloatStructureNetwork& network, const PolicyTensors& tensors,
                                    const std::vector<CallSequence>& sequences, int length);

}  // namespace dynamiccl::agents
