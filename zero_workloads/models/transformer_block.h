// SPDX-License-Identifier: Apache-2.0
// One pre-LayerNorm transformer block, as in GPT-2: x = x + attention(norm(x)), then x = x +
// feed_forward(norm(x)). All functions take and return [batch, sequence, hidden] in the model's type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "zero_workloads/models/layers.h"

namespace dynamiccl::zero {

// The size of a block before it is divided among the ranks of a tensor group.
struct BlockShape {
  int64_t hidden = 0;
  int64_t heads = 0;
  // Standard deviation of the first weights of the two layers that feed the residual stream. GPT-2 uses
  // 0.02 / sqrt(2 * layers), so that the stream's variance does not grow with depth.
  float output_deviation = 0.0f;
};

// Causal self-attention. A rank of a tensor group computes its share of the heads, and the projection at
// the end sums over the group.
class Attention {
 public:
  Attention(const BlockShape& shape, const TensorSplit& split);
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  // hidden / heads; a rank's number of heads follows from the projection's width.
  int64_t head_width_;
  ColumnParallelLinear query_key_value_;
  RowParallelLinear project_;
};

// Two linear layers with a GELU between them (tanh approximation, as in GPT-2); the inner width is 4 *
// hidden.
class FeedForward {
 public:
  FeedForward(const BlockShape& shape, const TensorSplit& split);
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  ColumnParallelLinear expand_;
  RowParallelLinear contract_;
};

// One or two units of the model. Gpt owns the blocks; the training thread calls them.
class TransformerBlock {
 public:
  TransformerBlock(const BlockShape& shape, const TensorSplit& split);
  void ListParameters(const std::string& prefix, ParameterList* list);
  // List the parameters of the two halves. The block's parameters are those of both, in this order.
  void ListAttentionParameters(const std::string& prefix, ParameterList* list);
  void ListFeedForwardParameters(const std::string& prefix, ParameterList* list);
  // The block's output is FeedForwardHalf(AttentionHalf(input)). With a split sequence, inputs and outputs
  // are this rank's slice of the sequence.
  at::Tensor forward(const at::Tensor& input) const { return FeedForwardHalf(AttentionHalf(input)); }
  at::Tensor AttentionHalf(const at::Tensor& input) const;
  at::Tensor FeedForwardHalf(const at::Tensor& input) const;

 private:
  LayerNorm attention_norm_;
  Attention attention_;
  LayerNorm feed_forward_norm_;
  FeedForward feed_forward_;
};

// True if attention runs as NaiveCausalAttention, false if it runs as LibTorch's fused kernel. The faster one
// is chosen.
bool UsesNaiveAttention(at::Device device, at::ScalarType type);

// softmax(q k^T / sqrt(width) + mask) v from plain matrix products (Vaswani et al. 2017, equation 1). The
// arguments and the result are [batch, heads, sequence, width]. It materialises all scores: heads *
// sequence^2 numbers for each row of the batch.
at::Tensor NaiveCausalAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

}  // namespace dynamiccl::zero
