// SPDX-License-Identifier: Apache-2.0
// Each parameter is one unit of the engine. A prefix sum over the number of parameters of the model's units
// translates between both kinds of unit indices.
#include "zero_workloads/zero/parameter_units.h"

namespace dynamiccl::zero {

std::vector<ModelUnit> UnitPerParameter(const std::vector<ModelUnit>& units) {
  std::vector<ModelUnit> divided;
  for (const ModelUnit& unit : units) {
    for (const ParameterSlot& parameter : unit.parameters) {
      divided.push_back({parameter.name, {parameter}, unit.is_root});
    }
  }
  return divided;
}

ParameterUnitHooks::ParameterUnitHooks(const std::vector<ModelUnit>& units, UnitHooks* engine)
    : engine_(engine) {
  int next = 0;
  for (const ModelUnit& unit : units) {
    first_.push_back(next);
    next += static_cast<int>(unit.parameters.size());
  }
  first_.push_back(next);
}

void ParameterUnitHooks::BeforeForward(int unit) {
  const size_t index = static_cast<size_t>(unit);
  for (int parameter = first_[index]; parameter < first_[index + 1]; ++parameter)
    engine_->BeforeForward(parameter);
}

void ParameterUnitHooks::AfterForward(int unit, const at::Tensor& output) {
  const size_t index = static_cast<size_t>(unit);
  // The loop runs from last to first: hooks on the output run in the order of registration, and the backward
  // pass goes from the last unit to the first.
  for (int parameter = first_[index + 1]; parameter-- > first_[index];)
    engine_->AfterForward(parameter, output);
}

}  // namespace dynamiccl::zero
