// SPDX-License-Identifier: Apache-2.0
// A layer's description of one of its parameters: name, shape, first values, and the member that holds the
// tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dynamiccl::zero {

// First values of a parameter: `mean` + `deviation` * a standard normal number. A deviation of 0 gives
// constants.
struct Initialisation {
  float mean = 0.0f;
  float deviation = 0.0f;
};

// One parameter, or this rank's slice of it. The layer owns the member to which `tensor` points; an engine
// binds that member to memory before the first forward pass.
//
// Example: rank 1 of 2 has rows 128 to 255 of an embedding [256, 64]. Its shape is {128, 64}, its global
// shape {256, 64}, its slice dimension 0 and its slice begin 128.
struct ParameterSlot {
  // Unique in the model, for example "block.3.attention.project.weight".
  std::string name;
  // The shape of the part that this rank holds.
  std::vector<int64_t> shape;
  Initialisation initialisation;
  at::Tensor* tensor = nullptr;
  // With tensor parallelism a rank may hold a slice: it starts at `slice_begin` along `slice_dimension` of
  // `global_shape` and has the extent that `shape` says. An empty shape and dimension -1 mean that this
  // rank holds the whole parameter.
  std::vector<int64_t> global_shape = {};
  int slice_dimension = -1;
  int64_t slice_begin = 0;
  // First values, if they are already known: fp32, flat, on the host. If undefined, they are drawn at random.
  at::Tensor values = {};

  // The number of elements that this rank holds.
  int64_t Elements() const;
  bool sliced() const { return slice_dimension >= 0; }
  // The number of elements of the whole parameter.
  int64_t GlobalElements() const;
  // Index in the whole parameter of element `index` of this slot; both are in row-major order.
  int64_t GlobalIndex(int64_t index) const;
  // Joins the slices of all ranks of the tensor group, given in rank order, to the whole parameter, flat.
  at::Tensor Assemble(std::span<const at::Tensor> slices) const;
};

using ParameterList = std::vector<ParameterSlot>;

// Writes elements [begin, end) of the slot's first values to `values`. A value depends only on the seed,
// the name and the index in the whole parameter (counter-based random numbers). Any division of the work
// among ranks therefore yields the same model.
void FillInitialValues(const ParameterSlot& parameter, uint64_t seed, int64_t begin, int64_t end,
                       float* values);

}  // namespace dynamiccl::zero
