// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/models/layers.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

namespace dynamiccl::zero {

void Linear::ListParameters(const std::string& prefix, ParameterList* list) {
  list->push_back({prefix + ".weight", {outputs_, inputs_}, {0.0f, deviation_}, &weight_});
  list->push_back({prefix + ".bias", {outputs_}, {}, &bias_});
}

at::Tensor Linear::forward(const at::Tensor& input) const {
  return at::linear(input, weight_, bias_);
}

void LayerNorm::ListParameters(const std::string& prefix, ParameterList* list) {
  list->push_back({prefix + ".weight", {width_}, {1.0f, 0.0f}, &weight_});
  list->push_back({prefix + ".bias", {width_}, {}, &bias_});
}

at::Tensor LayerNorm::forward(const at::Tensor& input) const {
  return at::layer_norm(input, {width_}, weight_, bias_, /*eps=*/1e-5);
}

void Embedding::ListParameters(const std::string& prefix, ParameterList* list) {
  list->push_back({prefix + ".weight", {rows_, width_}, {0.0f, deviation_}, &weight_});
}

at::Tensor Embedding::forward(const at::Tensor& indices) const {
  return at::embedding(weight_, indices);
}

at::Tensor Embedding::Rows(int64_t count) const {
  return weight_.narrow(0, 0, count);
}

}  // namespace dynamiccl::zero
