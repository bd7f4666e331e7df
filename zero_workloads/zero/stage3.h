// SPDX-License-Identifier: Apache-2.0
// ZeRO stage 3: every rank keeps only its shard of the parameters (P_os+g+p in the ZeRO paper, section 5.3).
//
// A unit's parameters are gathered before its forward pass and freed after it; they are gathered again before
// its backward pass and freed once its gradients are in a bucket. The root stays from the start of the
// forward pass to the end of the backward pass, since its operations are the model's first and last.
//
// With a secondary group (hpZ of ZeRO++, Wang et al. 2023) a second copy of the parameters stays among n
// nearby ranks. When a unit is freed after its forward pass, each of the n ranks keeps 1/n of it, and the
// gather before the backward pass is among those ranks.
#pragma once

#include <vector>

#include "zero_workloads/zero/parameter_state.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {

// The engine of stage 3, created by ZeroEngine::Create. Hooks run on the thread of the pass. Events in an
// impossible order throw std::logic_error (parameter_state.h).
class Stage3 final : public ZeroEngine {
 public:
  Stage3(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings);
  // Gathers may read the second copies, which are destroyed before the base class's members.
  ~Stage3() override { DrainCollectives(); }
  void BeforeForward(int unit) override;
  void AfterForward(int unit, const at::Tensor& output) override;
  void BeforeBackward(int unit) override;
  // True if the unit's full parameters are in memory and may be read.
  bool IsInUse(int unit) const override {
    return life_[static_cast<size_t>(unit)].life.Is(ParameterState::kInUse);
  }

 protected:
  void GradientsReady(int unit) override;
  void GradientsKept(int unit) override;
  void AfterBackward() override;
  void PublishParameters() override;

 private:
  // The state of one unit on this rank.
  struct Unit {
    ParameterLife life;
    PendingCollective gather;
    // The group over which `gather` runs.
    ProcessGroup* gathers_over = nullptr;
    // This rank's part of the second copy of the unit, 1/n of its flat elements for n ranks; undefined before
    // the first forward pass.
    at::Tensor secondary;
    // True if `secondary` holds the parameter values of the present step.
    bool secondary_is_new = false;
  };

  bool IsRoot(int unit) const { return parameters(unit).unit().is_root; }
  // Allocates the unit's memory and starts the gather, unless one is already in progress. `phase` labels the
  // call and decides whether the secondary copy may be used.
  void Gather(int unit, dynamicclPhase_t phase);
  // Starts the gathers of the next `units_ahead` units in the order of a forward or a backward pass, unless
  // they are in memory or their gathers are in progress.
  void GatherAheadForward(int unit);
  void GatherAheadBackward(int unit);
  // Waits for the unit's gather and marks the unit as in use.
  void StartUse(int unit);
  // Copies this rank's part of the unit to the second copy, once in each step, before the unit is freed.
  void KeepSecondary(int unit);
  // Frees the unit's full parameters after a backward pass. A unit that took no part in the pass is left
  // alone.
  void EndBackward(int unit);
  // Releases the unit's full parameters; the shard stays.
  void Free(int unit);

  // State of each unit.
  std::vector<Unit> life_;
};

}  // namespace dynamiccl::zero
