// SPDX-License-Identifier: Apache-2.0
// P_os+g+p: every rank keeps only its shard of the parameters. A unit is gathered before its forward pass,
// freed after it, gathered again before its backward pass, and freed when its gradients are in a bucket. The
// root stays from the start of the forward pass to its end of the backward pass, since its first and last
// operations are the model's. With a secondary group a unit that is freed after its forward pass leaves 1/n
// of itself on each of that group's n ranks, in memory that stays, and the gather before its backward pass is
// among those.
#pragma once

#include <vector>

#include "zero_workloads/zero/parameter_state.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {

class Stage3 final : public ZeroEngine {
 public:
  Stage3(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings);
  void BeforeForward(int unit) override;
  void AfterForward(int unit, const at::Tensor& output) override;
  void BeforeBackward(int unit) override;
  bool IsInUse(int unit) const override {
    return life_[static_cast<size_t>(unit)].life.Is(ParameterState::kInUse);
  }

 protected:
  void GradientsReady(int unit) override;
  void GradientsKept(int unit) override;
  void AfterBackward() override;
  void PublishParameters() override;

 private:
  struct Unit {
    ParameterLife life;
    PendingCollective gather;
    ProcessGroup* gathers_over = nullptr;  // of `gather`
    at::Tensor secondary;                  // this rank's part of the second copy; undefined before the first
    bool secondary_is_new = false;         // it holds the values of this step
  };

  bool IsRoot(int unit) const { return parameters(unit).unit().is_root; }
  // Starts the gather unless it is under way already.
  void Gather(int unit, dynamicclPhase_t phase);
  void StartUse(int unit);
  // Before the unit is freed.
  void KeepSecondary(int unit);
  // Gives the parameters up after a backward pass; not all units were in it.
  void EndBackward(int unit);
  void Free(int unit);

  std::vector<Unit> life_;  // by unit
};

}  // namespace dynamiccl::zero
