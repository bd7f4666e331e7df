// SPDX-License-Identifier: Apache-2.0
// A byte-level GPT with learned positions and an untied head, either whole or one tensor rank's share of it.
// The model does not depend on ZeRO: an engine that divides its parameters among data ranks follows its units
// through UnitHooks.
//
// The architecture is GPT-2's: token and position embeddings, pre-LayerNorm blocks, a last LayerNorm, and a
// linear head that turns each position's hidden vector into logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "zero_workloads/models/layers.h"
#include "zero_workloads/models/transformer_block.h"
#include "zero_workloads/models/unit.h"

namespace dynamiccl::zero {

// The size of a model; the same on all ranks. `heads` must divide `hidden`.
struct GptShape {
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  // The longest input, in tokens: the position embedding has this many rows.
  int64_t sequence = 128;
  // The number of different tokens; 256 for bytes.
  int64_t vocabulary = 256;
};

// Says what the units of the model are, besides the root.
enum class BlockUnits {
  // Each block.
  kWhole,
  // Each half of a block: attention, and feed-forward network.
  kHalves,
};

// The layers of one rank. The training process owns one and calls it on its training thread. Parameters are
// undefined after construction: an engine (zero/zero_engine.h) binds them through Units() before the first
// forward pass.
//
// Unit 0, the root, is embeddings, last norm and head; unit i is block i - 1, or half i - 1 of all halves.
class Gpt {
 public:
  // With a group in `split`, the model is divided among the group's ranks. The number of ranks must divide
  // heads, hidden and vocabulary, and every sequence length if the sequence is split.
  explicit Gpt(const GptShape& shape, const TensorSplit& split = {},
               BlockUnits block_units = BlockUnits::kWhole);
  // Slots point into the layers, so the object has a fixed address.
  Gpt(const Gpt&) = delete;
  Gpt& operator=(const Gpt&) = delete;

  // The units with their parameters, in the order of the forward pass. The slots point into the model and are
  // valid as long as it lives.
  std::vector<ModelUnit> Units();

  // `tokens` and `targets` are int64 [batch, sequence]; a target is the token that follows. Both functions
  // return the cross entropy in nats as fp32: MeanLoss returns a scalar, the mean over all targets;
  // LossPerToken returns one value per target, [batch * sequence]. The result is equal on all ranks of a
  // tensor group. These ranks must pass the same tokens and call the function together, since the layers
  // communicate.
  at::Tensor MeanLoss(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const;
  at::Tensor LossPerToken(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const;

 private:
  at::Tensor Loss(const at::Tensor& tokens, const at::Tensor& targets, int64_t reduction,
                  UnitHooks* hooks) const;
  // The number of units without the root.
  size_t InnerUnits() const;
  // Lists the parameters of inner unit `index`, with their block's prefix.
  void ListInnerParameters(size_t index, ParameterList* list);
  // The computation of inner unit `index`. It must not outlive the model.
  UnitForward InnerForward(size_t index) const;

  TensorSplit split_;
  BlockUnits block_units_;
  TokenEmbedding token_embedding_;
  PositionEmbedding position_embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> blocks_;
  LayerNorm last_norm_;
  ColumnParallelLinear head_;
};

}  // namespace dynamiccl::zero
