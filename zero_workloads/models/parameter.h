// SPDX-License-Identifier: Apache-2.0
// What a layer says about one of its parameters: its name, shape, first values and the member that holds the
// tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dynamiccl::zero {

// First values of a parameter: `mean` + `deviation` * normal numbers.
struct Initialisation {
  float mean = 0.0f;
  float deviation = 0.0f;
};

// Layers own the tensor member; who lays parameters out in memory binds it before the first forward pass.
struct ParameterSlot {
  std::string name;  // unique in the model, for example "block.3.attention.project.weight"
  std::vector<int64_t> shape;
  Initialisation initialisation;
  at::Tensor* tensor = nullptr;
  // Of the whole parameter, where this rank holds a slice of it (tensor parallelism): from `slice_begin` on
  // along `slice_dimension` of `global_shape`, as long as `shape` has elements for. Empty and -1: this is the
  // whole parameter.
  std::vector<int64_t> global_shape = {};
  int slice_dimension = -1;
  int64_t slice_begin = 0;
  // First values of a parameter that has them already, fp32 and flat; undefined: they are drawn.
  at::Tensor values = {};

  int64_t Elements() const;
  bool sliced() const { return slice_dimension >= 0; }
  // Elements of the whole parameter, and where in it, in row-major order, element `index` of this slot lies.
  int64_t GlobalElements() const;
  int64_t GlobalIndex(int64_t index) const;
  // The whole parameter, flat, of the values that the ranks of a tensor group have, in their order.
  at::Tensor Assemble(std::span<const at::Tensor> slices) const;
};

using ParameterList = std::vector<ParameterSlot>;

// Writes elements [begin, end) of the slot's first values. A value depends on seed, name and index in the
// whole parameter alone (counter-based random numbers), so that any division of the work among ranks gives
// the same model.
void FillInitialValues(const ParameterSlot& parameter, uint64_t seed, int64_t begin, int64_t end,
                       float* values);

}  // namespace dynamiccl::zero
