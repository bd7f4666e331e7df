// SPDX-License-Identifier: Apache-2.0
// The layers with parameters that a transformer is made of, each divided among the ranks of a tensor group or
// whole (Shoeybi et al. 2019, section 3). Own layers and not torch::nn's, because those allocate their
// parameters on construction; these take any tensor that is bound to them, of any device and type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "zero_workloads/models/parameter.h"
#include "zero_workloads/parallel/tensor_split.h"

namespace dynamiccl::zero {

struct LinearShape {
  int64_t inputs = 0;
  int64_t outputs = 0;
  float deviation = 0.0f;  // of the weight's first values
  int64_t parts = 1;  // equal parts of the outputs, each of which is divided among ranks: query, key, value
};

// y = x W^T + b where a rank has a part of the outputs. Every rank takes the same x, or its slice of the
// sequence.
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

// y = x W^T + b where a rank has a part of the inputs: as the layer above gives them. Every rank gets the
// same y, or its slice of the sequence; every rank has the whole bias.
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

// Over the last dimension, with epsilon 1e-5 as in GPT-2. Every rank has it whole.
class LayerNorm {
 public:
  explicit LayerNorm(int64_t width) : width_(width) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  int64_t width_;
  at::Tensor weight_, bias_;
};

struct EmbeddingShape {
  int64_t rows = 0;
  int64_t width = 0;
  float deviation = 0.0f;
};

// A rank has a part of the rows. Every rank gets the same output, or its slice of the sequence.
class TokenEmbedding {
 public:
  TokenEmbedding(const EmbeddingShape& shape, const TensorSplit& split) : shape_(shape), split_(split) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  // `tokens` are int64 [batch, sequence], whole on every rank.
  at::Tensor forward(const at::Tensor& tokens) const;

 private:
  EmbeddingShape shape_;
  TensorSplit split_;
  at::Tensor weight_;
};

// Every rank has it whole and adds it to what it has of the sequence.
class PositionEmbedding {
 public:
  PositionEmbedding(const EmbeddingShape& shape, const TensorSplit& split) : shape_(shape), split_(split) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  // The rows for a sequence of this length, or for the own slice of it.
  at::Tensor forward(int64_t sequence) const;

 private:
  EmbeddingShape shape_;
  TensorSplit split_;
  at::Tensor weight_;
};

}  // namespace dynamiccl::zero
