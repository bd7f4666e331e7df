// SPDX-License-Identifier: Apache-2.0
// One pre-LayerNorm transformer block of GPT-2: x + attention(norm(x)), then x + feed_forward(norm(x)).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "zero_workloads/models/layers.h"

namespace dynamiccl::zero {

// Causal self-attention over [batch, sequence, hidden].
class Attention {
 public:
  Attention(int64_t hidden, int64_t heads, float output_deviation);
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  int64_t heads_;
  Linear query_key_value_, project_;
};

class FeedForward {
 public:
  FeedForward(int64_t hidden, float output_deviation);
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  Linear expand_, contract_;
};

class TransformerBlock {
 public:
  // `output_deviation` starts the two layers that feed the residual stream: 0.02 / sqrt(2 * layers) in GPT-2.
  TransformerBlock(int64_t hidden, int64_t heads, float output_deviation);
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  LayerNorm attention_norm_;
  Attention attention_;
  LayerNorm feed_forward_norm_;
  FeedForward feed_forward_;
};

// softmax(q k^T / sqrt(d) + mask) v from plain matrix products; q, k, v are [batch, heads, sequence, width].
at::Tensor NaiveCausalAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

}  // namespace dynamiccl::zero
