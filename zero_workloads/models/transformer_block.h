// SPDX-License-Identifier: Apache-2.0
// One pre-LayerNorm transformer block of GPT-2: x + attention(norm(x)), then x + feed_forward(norm(x)).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "zero_workloads/models/layers.h"

namespace dynamiccl::zero {

struct BlockShape {
  int64_t hidden = 0;
  int64_t heads = 0;
  // Starts the two layers that feed the residual stream: 0.02 / sqrt(2 * layers) in GPT-2.
  float output_deviation = 0.0f;
};

// Causal self-attention over [batch, sequence, hidden]; a rank of a tensor group has its share of the heads.
class Attention {
 public:
  Attention(const BlockShape& shape, const TensorSplit& split);
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  int64_t head_width_;
  ColumnParallelLinear query_key_value_;
  RowParallelLinear project_;
};

class FeedForward {
 public:
  FeedForward(const BlockShape& shape, const TensorSplit& split);
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  ColumnParallelLinear expand_;
  RowParallelLinear contract_;
};

class TransformerBlock {
 public:
  TransformerBlock(const BlockShape& shape, const TensorSplit& split);
  void ListParameters(const std::string& prefix, ParameterList* list);
  // With a split sequence, of the own slice to the own slice.
  at::Tensor forward(const at::Tensor& input) const;

 private:
  LayerNorm attention_norm_;
  Attention attention_;
  LayerNorm feed_forward_norm_;
  FeedForward feed_forward_;
};

// Whether attention is computed by the function below and not by LibTorch's fused kernel.
bool UsesNaiveAttention(at::Device device, at::ScalarType type);

// softmax(q k^T / sqrt(d) + mask) v from plain matrix products; q, k, v are [batch, heads, sequence, width].
at::Tensor NaiveCausalAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

}  // namespace dynamiccl::zero
