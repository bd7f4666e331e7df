// SPDX-License-Identifier: Apache-2.0
// Lists the slice of each parameter that a rank holds, and implements the forward pass of each layer. The
// communication itself is in parallel/tensor_split.h.
#include "zero_workloads/models/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

namespace dynamiccl::zero {
namespace {

// Turns the slot of a whole parameter into that of this rank's slice along `dimension`. Without a group it
// returns the slot unchanged.
ParameterSlot SliceOf(ParameterSlot whole, int dimension, const TensorSplit& split) {
  if (split.group == nullptr) return whole;
  whole.global_shape = whole.shape;
  whole.slice_dimension = dimension;
  int64_t& extent = whole.shape[static_cast<size_t>(dimension)];
  whole.slice_begin = split.share_begin(extent);
  extent = split.share(extent);
  return whole;
}

// Returns the slot of this rank's rows of a weight or bias that has `parts` equal parts. The global shape
// gets a leading dimension of `parts`, because a rank's rows are not contiguous in the whole parameter.
ParameterSlot OwnRowsOf(ParameterSlot whole, int64_t parts, const TensorSplit& split) {
  if (parts == 1 || split.group == nullptr) return SliceOf(std::move(whole), 0, split);
  whole.shape[0] /= parts;
  whole.shape.insert(whole.shape.begin(), parts);
  ParameterSlot own = SliceOf(std::move(whole), 1, split);
  own.shape[1] *= parts;  // the layer treats the rows as one dimension
  own.shape.erase(own.shape.begin());
  return own;
}

}  // namespace

void ColumnParallelLinear::ListParameters(const std::string& prefix, ParameterList* list) {
  const auto& [inputs, outputs, deviation, parts] = shape_;
  list->push_back(
      OwnRowsOf({prefix + ".weight", {outputs, inputs}, {0.0f, deviation}, &weight_}, parts, split_));
  list->push_back(OwnRowsOf({prefix + ".bias", {outputs}, {}, &bias_}, parts, split_));
}

void RowParallelLinear::ListParameters(const std::string& prefix, ParameterList* list) {
  list->push_back(SliceOf(
      {prefix + ".weight", {shape_.outputs, shape_.inputs}, {0.0f, shape_.deviation}, &weight_}, 1, split_));
  list->push_back({prefix + ".bias", {shape_.outputs}, {}, &bias_});
}

at::Tensor RowParallelLinear::forward(const at::Tensor& input) const {
  if (split_.group == nullptr) return at::linear(input, weight_, bias_);
  return SumOfPartials(at::linear(input, weight_), split_) + bias_;
}

void LayerNorm::ListParameters(const std::string& prefix, ParameterList* list) {
  list->push_back({prefix + ".weight", {width_}, {1.0f, 0.0f}, &weight_});
  list->push_back({prefix + ".bias", {width_}, {}, &bias_});
}

at::Tensor LayerNorm::forward(const at::Tensor& input) const {
  return at::layer_norm(input, {width_}, weight_, bias_, /*eps=*/1e-5);
}

void TokenEmbedding::ListParameters(const std::string& prefix, ParameterList* list) {
  list->push_back(SliceOf(
      {prefix + ".weight", {shape_.rows, shape_.width}, {0.0f, shape_.deviation}, &weight_}, 0, split_));
}

at::Tensor TokenEmbedding::forward(const at::Tensor& tokens) const {
  if (split_.group == nullptr) return at::embedding(weight_, tokens);
  const at::Tensor row = tokens - split_.share_begin(shape_.rows);
  // True for each token whose row of the table belongs to another rank.
  const at::Tensor elsewhere = row.lt(0).logical_or(row.ge(split_.share(shape_.rows)));
  const at::Tensor partial = at::embedding(weight_, row.masked_fill(elsewhere, 0));
  return SumOfPartials(partial.masked_fill(elsewhere.unsqueeze(-1), 0), split_);
}

void PositionEmbedding::ListParameters(const std::string& prefix, ParameterList* list) {
  list->push_back({prefix + ".weight", {shape_.rows, shape_.width}, {0.0f, shape_.deviation}, &weight_});
}

at::Tensor PositionEmbedding::forward(int64_t sequence) const {
  if (!split_.splits_sequence()) return weight_.narrow(0, 0, sequence);
  return weight_.narrow(0, split_.share_begin(sequence), split_.share(sequence));
}

}  // namespace dynamiccl::zero
