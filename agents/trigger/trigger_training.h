// SPDX-License-Identifier: Apache-2.0
// Trains the structure LSTM in float.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "agents/trigger/bounded_lstm.h"
#include "agents/trigger/framework_sequences.h"
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
  // empty state or from `state`, as BoundedLstm has it. `noise` [sequence, call, kGateRows], where there is
  // some, is added to the gates' sums.
  at::Tensor Logits(const at::Tensor& tokens, BoundedLstmState* state = nullptr,
                    const at::Tensor& noise = {}) const;
  std::vector<at::Tensor> parameters() const;
};

struct TriggerTrainingSettings {
  uint64_t seed = 1;
  int iterations = 5000;
  int batch = 48;
  int length = 128;       // calls that a gradient goes back over
  int most_calls = 1024;  // of a sequence; the state goes on from one stretch of `length` calls to the next
  // Whose sequences are learnt from. Empty lists: every framework, every family; no jobs: as many of each as
  // the iterations can make use of, up to 150.
  JobPlan jobs{.jobs = 0, .invented = 8};
  double learning_rate = 1e-2;
  // Roles, phases and stages of other calls than the token's: a control that must fail.
  bool permute_labels = false;
};

struct TriggerTrainingReport {
  double seconds = 0;
  double loss = 0;  // mean of the last tenth
  size_t generated = 0;
};

// `plan` with every framework and family where it names none.
JobPlan Completed(JobPlan plan);

// Cross entropy of all heads; a sixth of each batch from `recorded`, where there are such, the rest
// generated and invented (settings.jobs); two thirds of all are rescaled.
TriggerNetwork TrainTrigger(const std::vector<CallSequence>& recorded,
                            const TriggerTrainingSettings& settings, TriggerTrainingReport* report);

}  // namespace dynamiccl::agents
