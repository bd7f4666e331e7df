// SPDX-License-Identifier: Apache-2.0
// How a model is divided into units, and what its forward pass says of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "zero_workloads/models/parameter.h"

namespace dynamiccl::zero {

// Parameters that are used together. Those of the root, the first units, are used from the first to the last
// operation.
struct ModelUnit {
  std::string name;
  ParameterList parameters;
  bool is_root = false;
};

// A unit's output from its input. Lives no longer than the model.
using UnitForward = std::function<at::Tensor(const at::Tensor&)>;

class UnitHooks {
 public:
  virtual ~UnitHooks() = default;
  // Before the first use of the unit's parameters in a forward pass.
  virtual void BeforeForward(int unit) = 0;
  // After the last use; `output` is what the next unit reads. The root has no output of its own: an undefined
  // tensor.
  virtual void AfterForward(int unit, const at::Tensor& output) = 0;
  // Between the two, for units with one input and one output: computes the output. Whoever keeps less than
  // autograd does may call `forward` once more in the backward pass.
  virtual at::Tensor Forward(int /*unit*/, const UnitForward& forward, const at::Tensor& input) {
    return forward(input);
  }
};

}  // namespace dynamiccl::zero
