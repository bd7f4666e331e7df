// SPDX-License-Identifier: Apache-2.0
// Divides a model into units and defines the events of a forward pass. A unit is the granularity at which
// ZeRO gathers and frees parameters and at which activations are checkpointed.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "zero_workloads/models/parameter.h"

namespace dynamiccl::zero {

// Parameters that are used together, for example those of one block. The root consists of the first unit or
// units and is in use from the first to the last operation of a pass.
struct ModelUnit {
  std::string name;
  ParameterList parameters;
  bool is_root = false;
  // Fills `values` of the unit's parameters, if they are computed late. An engine calls it once, on every
  // rank in the order of the units, and drops the values when it has copied its part.
  std::function<void(ParameterList&)> compute_values = {};
};

// Computes a unit's output from its input. It must not outlive the model.
using UnitForward = std::function<at::Tensor(const at::Tensor&)>;

// Receives the events of a forward pass. A model calls the hooks on the computing thread, for each unit in
// this order: BeforeForward, Forward, AfterForward. An engine implements the hooks so that a unit's
// parameters are in memory when the unit runs. Wrappers such as CheckpointedUnits pass the calls on. If a
// hook throws, the forward pass ends with that exception.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;
  // Called before the unit's parameters are first used in a forward pass.
  virtual void BeforeForward(int unit) = 0;
  // Called after the unit's parameters are last used in a forward pass. `output` is the input of the next
  // unit. The root has no output of its own and passes an undefined tensor.
  virtual void AfterForward(int unit, const at::Tensor& output) = 0;
  // Computes the output of a unit that has one input and one output. An implementation that keeps fewer
  // activations than autograd may call `forward` once more in the backward pass.
  virtual at::Tensor Forward(int /*unit*/, const UnitForward& forward, const at::Tensor& input) {
    return forward(input);
  }
};

}  // namespace dynamiccl::zero
