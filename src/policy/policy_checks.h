// SPDX-License-Identifier: Apache-2.0
// Checks the values of an undamaged policy: thresholds must be in range, sums must not overflow, and this
// machine must reproduce the golden vectors.
#pragma once

#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Describes one violation. It names the section and the check; policy_file.cc adds the file and the byte.
struct PolicyFault {
  uint32_t kind = 0;   // section; 0: no fault
  size_t element = 0;  // index of the first wrong element in it
  std::string check;
};

// The fewest fraction bits of the weights in each layer of the networks for configs and for effects. With
// fewer bits, a sum would have to be shifted to the left.
inline constexpr int kLeastLayerBits[3] = {kActivationFractionBits + 1 - kTokenFractionBits, 1,
                                           17 - kActivationFractionBits};

// Runs all checks; returns the first fault, or kind 0.
PolicyFault FindFault(const PolicyTensors& tensors);

// The single checks, in the order in which FindFault runs them. Each relies on those before it.
PolicyFault FindThresholdFault(const PolicyTensors& tensors);
PolicyFault FindTableFault(const PolicyTensors& tensors);
PolicyFault FindTreeFault(const PolicyTensors& tensors);
PolicyFault FindEffectFault(const PolicyTensors& tensors);
PolicyFault FindOverflow(const PolicyTensors& tensors);
PolicyFault FindGoldenMismatch(const PolicyTensors& tensors);

enum class Agent { kStructure, kConfig };
// Returns true if no sum of products in the agent's networks can exceed int32. An exporter uses it to choose
// scales.
bool SumsFit(const PolicyTensors& tensors, Agent agent);
// Returns the first layer (0 to 2) of the config networks in which a sum can exceed int32, or -1.
int OverflowingConfigLayer(const PolicyTensors& tensors);
// Returns the same for the networks that predict effects on steps.
int OverflowingEffectLayer(const PolicyTensors& tensors);

// Computes the golden outputs from the golden inputs with this build's inference.
void ComputeGoldenOutputs(PolicyTensors& tensors);

}  // namespace dynamiccl
