// SPDX-License-Identifier: Apache-2.0
// A model whose every parameter is a unit of its own: one collective a parameter, as a ZeRO without fused
// buffers would have it.
#pragma once

#include <vector>

#include "zero_workloads/models/unit.h"

namespace dynamiccl::zero {

std::vector<ModelUnit> UnitPerParameter(const std::vector<ModelUnit>& units);

// Tells an engine over UnitPerParameter(units) what a model says of `units`.
class ParameterUnitHooks final : public UnitHooks {
 public:
  // `engine` outlives the object.
  ParameterUnitHooks(const std::vector<ModelUnit>& units, UnitHooks* engine);

  void BeforeForward(int unit) override;
  void AfterForward(int unit, const at::Tensor& output) override;

 private:
  std::vector<int> first_;  // by unit, and one past the last: its first parameter's unit
  UnitHooks* engine_;
};

}  // namespace dynamiccl::zero
