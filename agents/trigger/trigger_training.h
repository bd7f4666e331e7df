// SPDX-License-Identifier: Apache-2.0
// Trains the structure LSTM in float.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "agents/trigger/call_sequence.h"
#include "agents/trigger/trigger_dataset.h"

namespace dynamiccl::agents {

// Parameters in LibTorch's layout (gates: input, forget, cell, output), one bias instead of LibTorch's two.
struct TriggerNetwork {
  at::Tensor input_weights;   // [kGateRows, kTokenFeatures]
  at::Tensor hidden_weights;  // [kGateRows, kStructureHidden]
  at::Tensor gate_bias;       // [kGateRows]
  at::Tensor head_weights;    // [kHeadRows, kStructureHidden]
  at::Tensor head_bias;       // [kHeadRows]

  // tokens [sequence, call, kTokenFeatures] to logits [sequence, call, kHeadRows], each sequence from an
  // empty state.
  at::Tensor Logits(const at::Tensor& tokens) const;
  std::vector<at::Tensor> parameters() const;
};

struct TriggerTrainingSettings {
  uint64_t seed = 1;
  int iterations = 500;
  int batch = 48;
  int length = 96;      // calls of a training sequence
  int generated = 512;  // sequences of the generator in the pool
  double learning_rate = 1e-2;
};

struct TriggerTrainingReport {
  double seconds = 0;
  double loss = 0;  // mean of the last tenth
};

// Cross entropy of the three heads; a third of each batch from `recorded`, most of it rescaled, the rest
// generated.
TriggerNetwork TrainTrigger(const std::vector<CallSequence>& recorded,
                            const TriggerTrainingSettings& settings, TriggerTrainingReport* report);

}  // namespace dynamiccl::agents
