// SPDX-License-Identifier: Apache-2.0
// The three layers with parameters that a transformer is made of. Own layers and not torch::nn's, because
// those allocate their parameters on construction; these take any tensor that is bound to them, of any device
// and type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "zero_workloads/models/parameter.h"

namespace dynamiccl::zero {

// y = x W^T + b
class Linear {
 public:
  Linear(int64_t inputs, int64_t outputs, float deviation)
      : inputs_(inputs), outputs_(outputs), deviation_(deviation) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  int64_t inputs_, outputs_;
  float deviation_;
  at::Tensor weight_, bias_;
};

// Over the last dimension, with epsilon 1e-5 as in GPT-2.
class LayerNorm {
 public:
  explicit LayerNorm(int64_t width) : width_(width) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  int64_t width_;
  at::Tensor weight_, bias_;
};

class Embedding {
 public:
  Embedding(int64_t rows, int64_t width, float deviation)
      : rows_(rows), width_(width), deviation_(deviation) {}
  void ListParameters(const std::string& prefix, ParameterList* list);
  // `indices` are int64.
  at::Tensor forward(const at::Tensor& indices) const;
  // The rows 0 to `count` - 1, as position embeddings use them.
  at::Tensor Rows(int64_t count) const;

 private:
  int64_t rows_, width_;
  float deviation_;
  at::Tensor weight_;
};

}  // namespace dynamiccl::zero
