// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/zero/stage3.h"

#include <c10/core/GradMode.h>

namespace dynamiccl::zero {

Stage3::Stage3(Gpt* model, ProcessGroup* group, const EngineSettings& settings)
    : ZeroEngine(model, group, settings), life_(static_cast<size_t>(units())) {}

void Stage3::Gather(int unit, dynamicclPhase_t phase) {
  auto& [life, gather] = life_[static_cast<size_t>(unit)];
  if (life.Is(ParameterState::kGathering)) return;
  life.MoveTo(ParameterState::kGathering);
  const at::Tensor& flat = parameters_[static_cast<size_t>(unit)].flat();
  ResizeStorage(flat, flat.numel() * static_cast<int64_t>(flat.element_size()));
  gather = group_->AllGather(Shard(parameter_shard_, unit), flat, {phase, DYNAMICCL_ROLE_PARAMETER_GATHER});
}

void Stage3::StartUse(int unit) {
  auto& [life, gather] = life_[static_cast<size_t>(unit)];
  group_->Await(gather);
  gather = {};
  life.MoveTo(ParameterState::kInUse);
}

void Stage3::Free(int unit) {
  life_[static_cast<size_t>(unit)].life.MoveTo(ParameterState::kPartitioned);
  ResizeStorage(parameters_[static_cast<size_t>(unit)].flat(), 0);
}

void Stage3::BeforeForward(int unit) {
  Gather(unit, DYNAMICCL_PHASE_FORWARD);
  if (settings_.prefetch && unit + 1 < units()) Gather(unit + 1, DYNAMICCL_PHASE_FORWARD);
  StartUse(unit);
}

void Stage3::AfterForward(int unit, const at::Tensor& output) {
  const bool backward_follows = c10::GradMode::is_enabled();
  if (unit == 0 && backward_follows) return;
  Free(unit);
  if (backward_follows) output.register_hook([this, unit](const at::Tensor&) { BeforeBackward(unit); });
}

void Stage3::BeforeBackward(int unit) {
  Gather(unit, DYNAMICCL_PHASE_BACKWARD);
  // Down to unit 1: the root never left.
  if (settings_.prefetch && unit > 1) Gather(unit - 1, DYNAMICCL_PHASE_BACKWARD);
  StartUse(unit);
}

void Stage3::GradientsReady(int unit) {
  life_[static_cast<size_t>(unit)].life.MoveTo(ParameterState::kGradientReady);
  ReduceGradients(unit);
  Free(unit);
}

void Stage3::PublishParameters() {
  RefreshParameterShard();
  for (Unit& unit : life_) unit.life.MoveTo(ParameterState::kUpdated);
}

}  // namespace dynamiccl::zero
