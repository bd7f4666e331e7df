// SPDX-License-Identifier: Apache-2.0
// A model in which every parameter is a unit of its own, with one collective for each parameter, like a ZeRO
// without fused buffers. Runs use it to measure the gain of fusing.
#pragma once

#include <vector>

#include "zero_workloads/models/unit.h"

namespace dynamiccl::zero {

// Splits each unit into one unit for each parameter, in the same order. The parameters of the root become
// units of the root.
std::vector<ModelUnit> UnitPerParameter(const std::vector<ModelUnit>& units);

// Translates the events of a model with `units` for an engine that was built over UnitPerParameter(units).
// The object must live as long as the model uses it. It runs on the thread of the forward pass.
class ParameterUnitHooks final : public UnitHooks {
 public:
  // `engine` must outlive the object.
  ParameterUnitHooks(const std::vector<ModelUnit>& units, UnitHooks* engine);

  void BeforeForward(int unit) override;
  void AfterForward(int unit, const at::Tensor& output) override;

 private:
  // For each unit of the model, the engine's unit of its first parameter; one more entry marks the end.
  std::vector<int> first_;
  UnitHooks* engine_;
};

}  // namespace dynamiccl::zero
