// SPDX-License-Identifier: Apache-2.0
// Gathering and freeing of parameters by the events of a pass. With prefetch, the gathers of the next n units
// (the previous ones in a backward pass) run while this unit computes, so at most n + 1 units besides the
// root are in memory.
#include "zero_workloads/zero/stage3.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

// Fills the memory with NaN. The write goes through data(), so that autograd does not notice it.
void Poison(const at::Tensor& flat) {
  flat.detach().data().fill_(std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

Stage3::Stage3(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings)
    : ZeroEngine(std::move(model), group, settings), life_(static_cast<size_t>(units())) {}

void Stage3::Gather(int unit, dynamicclPhase_t phase) {
  Unit& state = life_[static_cast<size_t>(unit)];
  if (state.life.Is(ParameterState::kGathering)) return;
  state.life.MoveTo(ParameterState::kGathering);
  const at::Tensor& flat = parameters_[static_cast<size_t>(unit)].flat();
  const CountAs category(MemoryCategory::kGathered);
  ResizeStorage(flat, flat.numel() * static_cast<int64_t>(flat.element_size()));
  if (settings_.poison) Poison(flat);
  // The second copy serves backward passes only, because each forward pass refreshes it.
  const bool near = phase == DYNAMICCL_PHASE_BACKWARD && state.secondary_is_new;
  state.gathers_over = near ? settings_.secondary : group_;
  const CallLabel label{phase, DYNAMICCL_ROLE_PARAMETER_GATHER};
  state.gather = near ? settings_.secondary->AllGather(state.secondary, flat, label)
                      : GatherShards(unit, Shard(parameter_shard_, unit), flat, label);
}

void Stage3::StartUse(int unit) {
  Unit& state = life_[static_cast<size_t>(unit)];
  state.gathers_over->Await(state.gather);
  state.gather = {};
  state.life.MoveTo(ParameterState::kInUse);
}

void Stage3::KeepSecondary(int unit) {
  Unit& state = life_[static_cast<size_t>(unit)];
  if (settings_.secondary == nullptr || state.secondary_is_new) return;
  const at::Tensor& flat = parameters_[static_cast<size_t>(unit)].flat();
  const int64_t length = flat.numel() / settings_.secondary->world();
  if (!state.secondary.defined()) {
    const CountAs category(MemoryCategory::kParameters);
    state.secondary = at::empty({length}, flat.options());
  }
  state.secondary.copy_(flat.narrow(0, settings_.secondary->rank() * length, length));
  state.secondary_is_new = true;
}

void Stage3::Free(int unit) {
  life_[static_cast<size_t>(unit)].life.MoveTo(ParameterState::kPartitioned);
  const at::Tensor& flat = parameters_[static_cast<size_t>(unit)].flat();
  if (settings_.poison) return Poison(flat);
  ResizeStorage(flat, 0);
}

void Stage3::BeforeForward(int unit) {
  Gather(unit, DYNAMICCL_PHASE_FORWARD);
  GatherAheadForward(unit);
  StartUse(unit);
}

void Stage3::GatherAheadForward(int unit) {
  const int64_t ahead = std::min<int64_t>(settings_.units_ahead, units() - 1 - unit);
  for (int next = unit + 1; next <= unit + ahead; ++next) {
    if (!IsInUse(next)) Gather(next, DYNAMICCL_PHASE_FORWARD);
  }
}

void Stage3::AfterForward(int unit, const at::Tensor& output) {
  const bool backward_follows = c10::GradMode::is_enabled();
  if (IsRoot(unit) && backward_follows) return;
  if (backward_follows) KeepSecondary(unit);
  Free(unit);
  if (backward_follows && output.defined())
    output.register_hook([this, unit](const at::Tensor&) { BeforeBackward(unit); });
}

void Stage3::BeforeBackward(int unit) {
  Gather(unit, DYNAMICCL_PHASE_BACKWARD);
  GatherAheadBackward(unit);
  StartUse(unit);
}

// The root was never freed, so its gather is not started ahead.
void Stage3::GatherAheadBackward(int unit) {
  const int64_t ahead = std::min<int64_t>(settings_.units_ahead, unit);
  for (int next = unit - 1; next >= unit - ahead && !IsRoot(next); --next) {
    if (!IsInUse(next)) Gather(next, DYNAMICCL_PHASE_BACKWARD);
  }
}

void Stage3::EndBackward(int unit) {
  ParameterLife& life = life_[static_cast<size_t>(unit)].life;
  if (life.Is(ParameterState::kGathering)) StartUse(unit);
  if (!life.Is(ParameterState::kInUse)) return;
  life.MoveTo(ParameterState::kGradientReady);
  Free(unit);
}

void Stage3::GradientsReady(int unit) {
  ReduceGradients(unit);
  EndBackward(unit);
}

void Stage3::GradientsKept(int unit) {
  EndBackward(unit);
}

void Stage3::AfterBackward() {
  for (int unit = 0; unit < units(); ++unit) EndBackward(unit);
}

void Stage3::PublishParameters() {
  RefreshParameterShard();
  for (Unit& unit : life_) {
    unit.life.MoveTo(ParameterState::kUpdated);
    unit.secondary_is_new = false;
  }
}

}  // namespace dynamiccl::zero
