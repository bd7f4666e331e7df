// SPDX-License-Identifier: Apache-2.0
// A byte-level GPT with learned positions and an untied head, whole or one tensor rank's share of it. Of ZeRO
// it knows nothing; who divides its parameters among data ranks watches its units through UnitHooks.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "zero_workloads/models/layers.h"
#include "zero_workloads/models/transformer_block.h"
#include "zero_workloads/models/unit.h"

namespace dynamiccl::zero {

struct GptShape {
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t sequence = 128;    // longest input
  int64_t vocabulary = 256;  // bytes
};

// Unit 0 is embeddings, last norm and head; unit i is block i - 1.
class Gpt {
 public:
  // With a group in `split` the model is divided among its ranks: their number divides heads, hidden and
  // vocabulary, and every sequence where the sequence is split.
  explicit Gpt(const GptShape& shape, const TensorSplit& split = {});
  Gpt(const Gpt&) = delete;  // slots point into the layers
  Gpt& operator=(const Gpt&) = delete;

  std::vector<ModelUnit> Units();

  // `tokens` and `targets` are int64 [batch, sequence]. Cross entropy in nats and fp32: the mean over all
  // targets, or one value a target; equal on all ranks of a tensor group, which get the same tokens.
  at::Tensor MeanLoss(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const;
  at::Tensor LossPerToken(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const;

 private:
  at::Tensor Loss(const at::Tensor& tokens, const at::Tensor& targets, int64_t reduction,
                  UnitHooks* hooks) const;

  TensorSplit split_;
  TokenEmbedding token_embedding_;
  PositionEmbedding position_embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> blocks_;
  LayerNorm last_norm_;
  ColumnParallelLinear head_;
};

}  // namespace dynamiccl::zero
