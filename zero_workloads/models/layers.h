// SPDX-License-Identifier: Apache-2.0
// The layers with parameters that make up a transformer, each either whole or divided among the ranks of a
// tensor group, as in Megatron-LM (Shoeybi et al. 2019, section 3). A linear layer that divides its outputs
// is followed by one that divides its inputs, so that a pair needs one sum over the group in each direction.
//
// torch::nn's layers are not used, because they allocate their parameters on construction. These layers take
// any tensor that is bound to them, of any device and type.
//
// All layers share one contract. ListParameters appends slots whose names start with `prefix`. An engine
// binds the tensors. forward() may then be called on the training thread. With a tensor group, all ranks of
// the group must call forward() together. Activations are [batch, sequence, width] in the parameters' type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "zero_workloads/models/parameter.h"
#include "zero_workloads/parallel/tensor_split.h"

namespace dynamiccl::zero {

// The size of a whole linear layer, before it is divided.
struct LinearShape {
  int64_t inputs = 0;
  int64_t outputs = 0;
  // Standard deviation of the weight's first values.
  float deviation = 0.0f;
  // The outputs consist of this many equal parts, and each part is divided among the ranks. A projection to
  // query, key and value has 3 parts, so that a rank gets matching heads of each.
  int64_t parts = 1;
};

// y = x W^T + b, where a rank computes its part of the outputs. The weight is [outputs / ranks, inputs],
// the bias [outputs / ranks]. Every rank passes the same x, or its slice of the sequence.
class ColumnParallelLinear {
 public:
  ColumnParallelLinear(const LinearShape& shape, const TensorSplit& split) : shape_(shape), split_(split) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const {
    return ColumnParallelProduct(input, weight_, bias_, split_);
  }

 private:
  LinearShape shape_;
  TensorSplit split_;
  at::Tensor weight_, bias_;
};

// y = x W^T + b, where a rank has a part of the inputs, as ColumnParallelLinear leaves them. The weight is
// [outputs, inputs / ranks]; every rank has the whole bias, [outputs]. Every rank gets the same y, or its
// slice of the sequence.
class RowParallelLinear {
 public:
  RowParallelLinear(const LinearShape& shape, const TensorSplit& split) : shape_(shape), split_(split) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  LinearShape shape_;
  TensorSplit split_;
  at::Tensor weight_, bias_;
};

// Normalises over the last dimension, with epsilon 1e-5 as in GPT-2. Every rank has the whole weight and
// bias, [width].
class LayerNorm {
 public:
  explicit LayerNorm(int64_t width) : width_(width) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  int64_t width_;
  at::Tensor weight_, bias_;
};

// A table of `rows` vectors of `width`; `deviation` is the standard deviation of its first values.
struct EmbeddingShape {
  int64_t rows = 0;
  int64_t width = 0;
  float deviation = 0.0f;
};

// Looks tokens up in a table whose rows are divided among the ranks. A rank contributes zeros for tokens of
// other ranks, and the sum over the group gives every rank the same output, or its slice of the sequence.
class TokenEmbedding {
 public:
  TokenEmbedding(const EmbeddingShape& shape, const TensorSplit& split) : shape_(shape), split_(split) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  // `tokens` are int64 [batch, sequence], and whole on every rank. Returns [batch, sequence, width], or this
  // rank's slice of the sequence.
  at::Tensor forward(const at::Tensor& tokens) const;

 private:
  EmbeddingShape shape_;
  TensorSplit split_;
  at::Tensor weight_;
};

// One learned vector for each position. Every rank holds the whole table and uses the rows of its own slice.
class PositionEmbedding {
 public:
  PositionEmbedding(const EmbeddingShape& shape, const TensorSplit& split) : shape_(shape), split_(split) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  // Returns the rows for a whole sequence of this length, [sequence, width]. With a split sequence, returns
  // the rows of this rank's slice, [sequence / ranks, width].
  at::Tensor forward(int64_t sequence) const;

 private:
  EmbeddingShape shape_;
  TensorSplit split_;
  at::Tensor weight_;
};

}  // namespace dynamiccl::zero
