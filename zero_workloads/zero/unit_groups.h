// SPDX-License-Identifier: Apache-2.0
// A model in which several neighbouring units are one unit of the engine: fewer and larger collectives, for
// links on which each call costs much, at the price of more memory for gathered parameters.
#pragma once

#include <vector>

#include "zero_workloads/models/unit.h"

namespace dynamiccl::zero {

// Joins each `size` consecutive units into one, in the same order; the last group may be smaller. Units of
// the root stay as they are.
std::vector<ModelUnit> GroupUnits(const std::vector<ModelUnit>& units, int64_t size);

// Translates the events of a model with `units` for an engine that was built over GroupUnits(units, size): a
// group is in use from its first unit to its last. The object must live as long as the model uses it. It runs
// on the thread of the forward pass.
class GroupedUnitHooks final : public UnitHooks {
 public:
  // `engine` must outlive the object.
  GroupedUnitHooks(const std::vector<ModelUnit>& units, int64_t size, UnitHooks* engine);

  void BeforeForward(int unit) override;
  void AfterForward(int unit, const at::Tensor& output) override;

 private:
  // For each unit of the model, its group; one more entry marks the end.
  std::vector<int> group_;
  UnitHooks* engine_;
};

}  // namespace dynamiccl::zero
