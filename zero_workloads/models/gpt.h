// SPDX-License-Identifier: Apache-2.0
// A byte-level GPT with learned positions and an untied head. It knows nothing of ranks; who divides it among
// ranks watches its units through UnitHooks.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "zero_workloads/models/layers.h"
#include "zero_workloads/models/transformer_block.h"

namespace dynamiccl::zero {

struct GptShape {
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t sequence = 128;    // longest input
  int64_t vocabulary = 256;  // bytes
};

// Parameters that are used together. Unit 0 (the root) is embeddings, last norm and head, used from the first
// to the last operation; unit i is block i - 1.
struct ModelUnit {
  std::string name;
  ParameterList parameters;
};

class UnitHooks {
 public:
  virtual ~UnitHooks() = default;
  // Before the first use of the unit's parameters in a forward pass.
  virtual void BeforeForward(int unit) = 0;
  // After the last use; `output` is what the next unit reads. The root has no output of its own: an undefined
  // tensor.
  virtual void AfterForward(int unit, const at::Tensor& output) = 0;
};

class Gpt {
 public:
  explicit Gpt(const GptShape& shape);
  Gpt(const Gpt&) = delete;  // slots point into the layers
  Gpt& operator=(const Gpt&) = delete;

  std::vector<ModelUnit> Units();

  // `tokens` and `targets` are int64 [batch, sequence]. Cross entropy in nats and fp32: the mean over all
  // targets, or one value a target.
  at::Tensor MeanLoss(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const;
  at::Tensor LossPerToken(const at::Tensor& tokens, const at::Tensor& targets, UnitHooks* hooks) const;

 private:
  at::Tensor Loss(const at::Tensor& tokens, const at::Tensor& targets, int64_t reduction,
                  UnitHooks* hooks) const;

  Embedding token_embedding_, position_embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> blocks_;
  LayerNorm last_norm_;
  Linear head_;
};

}  // namespace dynamiccl::zero
