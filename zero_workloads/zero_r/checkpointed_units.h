// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing (Chen et al. 2016): only the input of each block is kept, and the backward pass
// computes the block again before it needs the activations inside. The result does not change, since the same
// operations run on the same bits. The model draws no random numbers, so no generator has to be rewound.
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/models/unit.h"
#include "zero_workloads/zero_r/activation_store.h"

namespace dynamiccl::zero {

// Sits between a model and the hooks of its engine, on the thread of the pass. The recomputation of a unit
// starts after the hook of the unit's output has run, so the engine has already gathered the unit's
// parameters for the backward pass. The unit's gradients appear only after the recomputation.
class CheckpointedUnits final : public UnitHooks {
 public:
  // Engine and store must outlive this object and the autograd graphs of its forward passes.
  CheckpointedUnits(UnitHooks* engine, ActivationStore* store) : engine_(engine), store_(store) {}

  void BeforeForward(int unit) override { engine_->BeforeForward(unit); }
  void AfterForward(int unit, const at::Tensor& output) override { engine_->AfterForward(unit, output); }
  // Runs `forward` and keeps only `input`. Without gradients it only passes the call on. `input` must require
  // a gradient, because otherwise no backward pass would run; if it does not, throws std::logic_error.
  at::Tensor Forward(int unit, const UnitForward& forward, const at::Tensor& input) override;

 private:
  UnitHooks* engine_;
  ActivationStore* store_;
};

}  // namespace dynamiccl::zero
