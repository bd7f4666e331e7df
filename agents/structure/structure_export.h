// SPDX-License-Identifier: Apache-2.0
// Converts the structure LSTM to integers.
#pragma once

#include <vector>

#include "agents/structure/structure_training.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Fills weights, tables of sigmoid and tanh, and thresholds. Weights get as many fraction bits as fit into 16
// bits and keep every sum below 2^31. kInternal if no scale achieves that. Margins and surprise are
// preliminary until CalibrateStructure.
Status ExportStructure(const FloatStructureNetwork& network, PolicyTensors& tensors);

// Golden tokens: the first calls of eight sequences, or of as many as exist, repeated. `sequences` must not
// be empty.
void FillGoldenTokens(const std::vector<CallSequence>& sequences, PolicyTensors& tensors);

// By head: the share of calls with a target for which float and integer network have the same best class.
struct StructureAgreement {
  double role = 1, phase = 1, stage = 1;
};
// Compares the first `length` calls of each sequence.
StructureAgreement CompareStructure(const FloatStructureNetwork& network, const PolicyTensors& tensors,
                                    const std::vector<CallSequence>& sequences, int length);

}  // namespace dynamiccl::agents
