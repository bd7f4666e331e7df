// SPDX-License-Identifier: Apache-2.0
// What a layer says about one of its parameters: its name, shape, first values and the member that holds the
// tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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

  int64_t Elements() const;
};

using ParameterList = std::vector<ParameterSlot>;

// Writes elements [begin, end) of the parameter's first values. A value depends on seed, name and index alone
// (counter-based random numbers), so that any division of the work among ranks gives the same model.
void FillInitialValues(const ParameterSlot& parameter, uint64_t seed, int64_t begin, int64_t end,
                       float* values);

}  // namespace dynamiccl::zero
