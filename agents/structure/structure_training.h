// SPDX-License-Identifier: Apache-2.0
// Trains the structure LSTM in float.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>
#include <vector>

#include "agents/structure/bounded_lstm.h"
#include "agents/structure/framework_sequences.h"
#include "agents/structure/structure_dataset.h"
#include "agents/training_progress.h"

namespace dynamiccl::agents {

// The parameters in LibTorch's layout (gates in the order input, forget, candidate, output), with one bias
// instead of LibTorch's two. All are fp32. The comment of a tensor gives its shape.
struct FloatStructureNetwork {
  // [kGateRows, kTokenFeatures].
  at::Tensor input_weights;
  // [kGateRows, kStructureHidden].
  at::Tensor hidden_weights;
  // [kGateRows].
  at::Tensor gate_bias;
  // [kHeadRows, kStructureHidden]: the weights of all heads.
  at::Tensor head_weights;
  // [kHeadRows].
  at::Tensor head_bias;

  // Logits [sequence, call, kHeadRows] from tokens [sequence, call, kTokenFeatures]. Each sequence starts
  // from an empty state or from `state`, as in BoundedLstm. `noise` [sequence, call, kGateRows], if defined,
  // is added to the gates' sums.
  at::Tensor Logits(const at::Tensor& tokens, BoundedLstmState* state = nullptr,
                    const at::Tensor& noise = {}) const;
  std::vector<at::Tensor> parameters() const;
};

// Settings of the training.
struct StructureTrainingSettings {
  uint64_t seed = 1;
  int iterations = 10000;
  // The network with which training begins, or null for a random one. It must outlive the training.
  const FloatStructureNetwork* begin = nullptr;
  // Number of sequences in a batch.
  int batch = 48;
  // Number of calls over which gradients are propagated back (truncated backpropagation through time).
  int length = 128;
  // Maximum number of calls of a sequence that are used. The state carries over from one stretch of `length`
  // calls to the next.
  int most_calls = 1024;
  // Selects the random jobs to generate. An empty list means every framework, or every model family. With 0
  // jobs, each framework and family gets one job per 30 iterations, but 12 at least and 150 at most.
  JobPlan jobs{.jobs = 0, .invented = 8};
  // Once this share of the iterations is over, one in `question_every` of the sequences that begin is learnt
  // as questions (AsQuestions). If `question_every` is 0, none is. With questions from the first iteration
  // on, fewer phases are recognised (docs/results/agents-structure.md).
  double questions_from = 0.6;
  int question_every = 4;
  double learning_rate = 1e-2;
  // A control experiment that must fail: each call gets the role, phase and stage of another call.
  bool permute_labels = false;
  // Called after each iteration. Its TrainingPosition counts the sequences as samples.
  TrainingObserver observer = {};
};

// The settings with which a trained network learns a site's own traces. A sixth of each batch's sequences is
// recorded and all others are generated, so that the network still recognises what it recognised before. No
// sequence is learnt as questions: the network still recognises questions without that, and learning them
// would cost accuracy in stages. With half of this learning rate, the network recognised the stages of a
// shape that was not in the traces less often (docs/results/agents-structure.md).
inline StructureTrainingSettings StructureFineTuning(uint64_t seed, const FloatStructureNetwork& begin) {
  return {.seed = seed, .iterations = 600, .begin = &begin, .question_every = 0, .learning_rate = 5e-3};
}

// Results of the training.
struct StructureTrainingReport {
  double seconds = 0;
  // Mean loss over the last tenth of the iterations.
  double loss = 0;
  // Number of generated sequences, and their checksum (learnt_data.h).
  size_t generated = 0;
  uint64_t checksum = 0;
};

// Returns the sequences that a training with these settings generates. `random` is a new generator with the
// settings' seed.
std::vector<CallSequence> GeneratedSequences(const StructureTrainingSettings& settings,
                                             std::mt19937_64& random);

// Returns `plan`; an empty list of frameworks or families is replaced by the list of all of them.
JobPlan Completed(JobPlan plan);

// Minimises the sum of the cross entropies of all heads. A sixth of each batch comes from `recorded`, if it
// has any sequences; the rest is generated and invented (settings.jobs). Two thirds of all sequences are
// rescaled. Equal seeds and inputs give equal networks.
FloatStructureNetwork TrainStructure(const std::vector<CallSequence>& recorded,
                                     const StructureTrainingSettings& settings,
                                     StructureTrainingReport* report);

}  // namespace dynamiccl::agents
