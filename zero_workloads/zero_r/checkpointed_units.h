// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing: of each block only the input is kept, and the backward pass computes the block
// again before it needs what is inside. Numbers do not change, since the same operations run on the same
// bits; the model draws no random numbers, so that there is no generator to rewind.
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/models/unit.h"
#include "zero_workloads/zero_r/activation_store.h"

namespace dynamiccl::zero {

// Goes between a model and the hooks of its engine. A unit that is computed again has its parameters where
// the engine puts them for the unit's backward pass: before the hook of the unit's output runs nothing is
// computed, and its gradients are there only afterwards.
class CheckpointedUnits final : public UnitHooks {
 public:
  // Engine and store outlive this, and the graphs of its forward passes.
  CheckpointedUnits(UnitHooks* engine, ActivationStore* store) : engine_(engine), store_(store) {}

  void BeforeForward(int unit) override { engine_->BeforeForward(unit); }
  void AfterForward(int unit, const at::Tensor& output) override { engine_->AfterForward(unit, output); }
  // Without gradients it is the engine's. `input` must take a gradient, or nothing would run backward.
  at::Tensor Forward(int unit, const UnitForward& forward, const at::Tensor& input) override;

 private:
  UnitHooks* engine_;
  ActivationStore* store_;
};

}  // namespace dynamiccl::zero
