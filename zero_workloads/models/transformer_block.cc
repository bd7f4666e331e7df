// SPDX-License-Identifier: Apache-2.0
// Attention and feed-forward network of a GPT-2 block, with the faster of two implementations of attention.
#include "zero_workloads/models/transformer_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

namespace dynamiccl::zero {

// Standard deviation of every weight that does not feed the residual stream, as in GPT-2.
constexpr float kWeightDeviation = 0.02f;

bool UsesNaiveAttention(at::Device device, at::ScalarType type) {
  // On a CPU and in fp32, LibTorch's fused kernel takes half the time of matrix products. In bf16 it takes
  // three times their time, because the CPU has instructions for matrix products in bf16. Measured with torch
  // 2.13 at 8 x 8 heads x 128 x 32.
  return device.is_cpu() && type != at::kFloat;
}

at::Tensor NaiveCausalAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const int64_t length = query.size(-2), width = query.size(-1);
  // The mask uses -infinity because a large number such as -1e9 does not fit into half precision.
  const at::Tensor mask =
      at::full({length, length}, -std::numeric_limits<double>::infinity(), query.options()).triu(1);
  const at::Tensor scores =
      at::baddbmm(mask, query.reshape({-1, length, width}), key.reshape({-1, length, width}).transpose(1, 2),
                  1.0, 1.0 / std::sqrt(width));
  return at::bmm(at::softmax(scores, -1), value.reshape({-1, length, width})).view(query.sizes());
}

Attention::Attention(const BlockShape& shape, const TensorSplit& split)
    : head_width_(shape.hidden / shape.heads),
      query_key_value_({shape.hidden, 3 * shape.hidden, kWeightDeviation, /*parts=*/3}, split),
      project_({shape.hidden, shape.hidden, shape.output_deviation}, split) {}

void Attention::ListParameters(const std::string& prefix, ParameterList* list) {
  query_key_value_.ListParameters(prefix + ".query_key_value", list);
  project_.ListParameters(prefix + ".project", list);
}

at::Tensor Attention::forward(const at::Tensor& input) const {
  const at::Tensor projected = query_key_value_.forward(input);
  const int64_t batch = projected.size(0), length = projected.size(1);
  // [batch, length, 3 * hidden] becomes [3, batch, heads of this rank, length, head width].
  const at::Tensor qkv = projected.view({batch, length, 3, -1, head_width_}).permute({2, 0, 3, 1, 4});
  const at::Tensor mixed =
      UsesNaiveAttention(input.device(), input.scalar_type())
          ? NaiveCausalAttention(qkv[0], qkv[1], qkv[2])
          : at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, /*is_causal=*/true);
  return project_.forward(mixed.transpose(1, 2).reshape({batch, length, -1}));
}

FeedForward::FeedForward(const BlockShape& shape, const TensorSplit& split)
    : expand_({shape.hidden, 4 * shape.hidden, kWeightDeviation}, split),
      contract_({4 * shape.hidden, shape.hidden, shape.output_deviation}, split) {}

void FeedForward::ListParameters(const std::string& prefix, ParameterList* list) {
  expand_.ListParameters(prefix + ".expand", list);
  contract_.ListParameters(prefix + ".contract", list);
}

at::Tensor FeedForward::forward(const at::Tensor& input) const {
  return contract_.forward(at::gelu(expand_.forward(input), "tanh"));
}

TransformerBlock::TransformerBlock(const BlockShape& shape, const TensorSplit& split)
    : attention_norm_(shape.hidden),
      attention_(shape, split),
      feed_forward_norm_(shape.hidden),
      feed_forward_(shape, split) {}

void TransformerBlock::ListParameters(const std::string& prefix, ParameterList* list) {
  ListAttentionParameters(prefix, list);
  ListFeedForwardParameters(prefix, list);
}

void TransformerBlock::ListAttentionParameters(const std::string& prefix, ParameterList* list) {
  attention_norm_.ListParameters(prefix + ".attention_norm", list);
  attention_.ListParameters(prefix + ".attention", list);
}

void TransformerBlock::ListFeedForwardParameters(const std::string& prefix, ParameterList* list) {
  feed_forward_norm_.ListParameters(prefix + ".feed_forward_norm", list);
  feed_forward_.ListParameters(prefix + ".feed_forward", list);
}

at::Tensor TransformerBlock::AttentionHalf(const at::Tensor& input) const {
  return input + attention_.forward(attention_norm_.forward(input));
}

at::Tensor TransformerBlock::FeedForwardHalf(const at::Tensor& input) const {
  return input + feed_forward_.forward(feed_forward_norm_.forward(input));
}

}  // namespace dynamiccl::zero
