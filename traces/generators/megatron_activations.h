// SPDX-License-Identifier: Apache-2.0
// The collectives of Megatron-LM's tensor parallelism: activations of a transformer, with and without
// sequence parallelism (megatron/core/tensor_parallel: layers.py, mappings.py, cross_entropy.py, random.py).
#pragma once

#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// Adds to `list` what one micro-batch issues on the tensor-parallel communicator, part by part. With one rank
// there nothing is issued.
class MegatronActivations {
 public:
  MegatronActivations(const GeneratorInput& input, OperationList& list);

  // The first rank of the group hands the batch to the others.
  void Batch();
  void EmbeddingForward();
  void LayerForward();
  // The output layer and the loss over a vocabulary that is split.
  void HeadForward();
  void HeadBackward();
  // With recomputation the layer's forward comes again first.
  void LayerBackward();
  void EmbeddingBackward();
  // Sequence parallelism: every rank has seen a part of the tokens only, so the gradients of what it holds
  // whole (norms, biases of row-parallel layers) are summed, in one message.
  void SharedGradients();

 private:
  void Tokens(DataType type);
  void Activation(Collective collective);

  const GeneratorInput& input_;
  OperationList& list_;
  const bool active_;
  const bool sequence_parallel_;
  const DataType type_;
  int64_t tokens_ = 0;    // of a micro-batch
  int64_t elements_ = 0;  // tokens x hidden
};

}  // namespace dynamiccl
