// SPDX-License-Identifier: Apache-2.0
// The collectives of Megatron-LM's tensor parallelism: activations of a transformer, with and without
// sequence parallelism (megatron/core/tensor_parallel: layers.py, mappings.py, cross_entropy.py, random.py).
#pragma once

#include "traces/generators/framework_generator.h"

namespace dynamiccl {

// Adds to `list` what one micro-batch issues on the tensor-parallel communicator, part by part. The caller
// calls the parts in the order of a step. With one tensor-parallel rank nothing is issued.
class MegatronActivations {
 public:
  // Both arguments must outlive this object.
  MegatronActivations(const GeneratorInput& input, OperationList& list);

  // The first rank of the group hands the batch to the others.
  void Batch();
  // Sums the parts of the embedding, of which each rank has one part of the vocabulary.
  void EmbeddingForward();
  // One block: attention, then the feed-forward part.
  void LayerForward();
  // The output layer and the loss over a vocabulary that is split.
  void HeadForward();
  // The output layer's input gradient is summed over the ranks.
  void HeadBackward();
  // With recomputation the layer's forward pass is issued once more before its backward pass.
  void LayerBackward();
  void EmbeddingBackward();
  // For sequence parallelism. Every rank has seen only a part of the tokens. So the gradients of parameters
  // that every rank holds completely (norms, biases of row-parallel layers) are summed, in one message.
  void SharedGradients();

 private:
  // A broadcast of one value for each token.
  void Tokens(DataType type);
  // A collective over all activations of a micro-batch.
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
