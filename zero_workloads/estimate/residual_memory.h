// SPDX-License-Identifier: Apache-2.0
// Residual states, which ZeRO-R reduces: activations, their checkpoints, and fused buffers, on each rank. The
// formulas are those of the ZeRO paper (model_states.h), sections 3.2 and 6.
#pragma once

#include <cstdint>

namespace dynamiccl::zero {

// The size of a GPT-2-like model, reduced to what its memory depends on.
struct TransformerShape {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t sequence = 1024;
  // The vocabulary of GPT-2.
  int64_t vocabulary = 50257;
  // True if the head shares the token embedding, as in GPT-2.
  bool tied_head = true;
};

// Parameters of a GPT-2-like model: 12 hidden^2 + 13 hidden for each block, plus embeddings, last norm and
// head.
double ParametersOf(const TransformerShape& shape);

// Selects what is kept of the activations between the forward and the backward pass.
enum class Checkpoints : uint8_t {
  // All activations are kept.
  kNone,
  // Only the input of each block is kept. The backward pass computes the rest of the block again.
  kEveryBlock,
  // The inputs of the blocks are kept, partitioned over the tensor-parallel ranks (the ZeRO paper's P_a).
  kPartitioned,
  // The partitioned inputs are kept in host memory (the ZeRO paper's P_a+cpu).
  kPartitionedCpu
};

// Bytes of activations on one rank.
struct ActivationMemory {
  // Bytes of activations or checkpoints that are kept from the forward to the backward pass.
  double kept = 0;
  // Bytes of activations of the block that is being computed again. 0 without checkpoints.
  double working = 0;
  double on_host = 0;

  double total() const { return kept + working; }
};

// Numbers that a GPT-2-like block keeps for its backward pass, as a multiple of the numbers in its input (the
// ZeRO paper's footnote 3).
inline constexpr double kActivationsOfBlock = 12;

// Activations of `batch` sequences on one rank. `element_bytes` is 2 for fp16 and bf16. A block keeps
// of_block * hidden * batch * sequence numbers. Tensor parallelism divides these numbers over its ranks. The
// input of a block is divided only if checkpoints are partitioned; otherwise each rank keeps the whole input.
ActivationMemory ActivationsOf(const TransformerShape& shape, int64_t batch, int64_t tensor_parallel,
                               double element_bytes, Checkpoints checkpoints,
                               double of_block = kActivationsOfBlock);

// Memory of activations with checkpoints at the best distance. At this distance the memory is divided by the
// square root of the number of layers (Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv
// 1604.06174).
double ActivationsWithBestCheckpoints(const TransformerShape& shape, int64_t batch, double element_bytes);

// Bytes of one fp32 buffer for all gradients. Buffers of constant size (the ZeRO paper's C_B) do not grow
// with the model and need no such buffer.
double FusedBuffer(double parameters);

}  // namespace dynamiccl::zero
