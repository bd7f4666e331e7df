// SPDX-License-Identifier: Apache-2.0
// The structure LSTM as integers.
#pragma once

#include <vector>

#include "agents/trigger/trigger_training.h"
#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Weights with as many fraction bits as fit into 16 bits and keep every sum below 2^31, the tables, and the
// thresholds. An error where no scale does.
Status ExportTrigger(const TriggerNetwork& network, PolicyTensors& tensors);

// Golden tokens: the first calls of eight sequences, or of as many as there are, again and again.
void FillGoldenTokens(const std::vector<CallSequence>& sequences, PolicyTensors& tensors);

// Share of calls for which float and integer networks put the same class first, over those with a target.
struct TriggerAgreement {
  double role = 1, phase = 1, stage = 1;
};
TriggerAgreement CompareTrigger(const TriggerNetwork& network, const PolicyTensors& tensors,
                                const std::vector<CallSequence>& sequences, int length);

}  // namespace dynamiccl::agents
