// SPDX-License-Identifier: Apache-2.0
// What ZeRO-R is about: activations, their checkpoints, and fused buffers, on each rank. Formulas of the
// paper (model_states.h), sections 3.2 and 6.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

struct TransformerShape {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t sequence = 1024;
  int64_t vocabulary = 50257;  // GPT-2's
  bool tied_head = true;       // the head is the token embedding, as in GPT-2
};

// Of a GPT-2-like model: 12 hidden^2 + 13 hidden a block, embeddings, last norm and head.
double ParametersOf(const TransformerShape& shape);

enum class Checkpoints : uint8_t {
  kNone,           // all activations are kept
  kEveryBlock,     // the input of each block, and what one block computes
  kPartitioned,    // P_a: the inputs divided over the tensor-parallel ranks
  kPartitionedCpu  // P_a+cpu: these in host memory
};

struct ActivationMemory {
  double kept = 0;     // activations or checkpoints from forward to backward
  double working = 0;  // of the block that is computed; 0 without checkpoints
  double on_host = 0;

  double total() const { return kept + working; }
};

// Numbers that a GPT-2-like block keeps for its backward pass, in numbers of its input (the paper's footnote
// 3).
inline constexpr double kActivationsOfBlock = 12;

// `batch`: sequences of this rank; `element_bytes` 2 for fp16 and bf16. A block keeps
// `of_block` x hidden x batch x sequence numbers; blocks divide them over `tensor_parallel` ranks, but each
// keeps the whole input of every block.
ActivationMemory ActivationsOf(const TransformerShape& shape, int64_t batch, int64_t tensor_parallel,
                               double element_bytes, Checkpoints checkpoints,
                               double of_block = kActivationsOfBlock);

// Activations when checkpoints are as far apart as takes least memory: the square root of their number of
// layers less (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174).
double ActivationsWithBestCheckpoints(const TransformerShape& shape, int64_t batch, double element_bytes);

// One buffer for all gradients, in fp32. Buffers of constant size (C_B) do not depend on the model.
double FusedBuffer(double parameters);

}  // namespace dynamiccl::zero
