// SPDX-License-Identifier: Apache-2.0
// Stages 0 to 2 differ in when ReduceGradients is called and in how ranks get the new parameters. In stage 0
// a rank copies them from its own master weights. In stages 1 and 2 there is one AllGather for each unit,
// issued during the optimizer step.
#include "zero_workloads/zero/replicated_stages.h"

namespace dynamiccl::zero {

void Stage0::GradientsReady(int unit) {
  ReduceGradients(unit);
}

void Stage0::PublishParameters() {
  const at::Tensor master = optimizer_->master().view({group_->world(), -1});
  for (int unit = 0; unit < units(); ++unit) {
    const auto [shard_elements, arena_offset] = partition_->unit(unit);
    parameters_[static_cast<size_t>(unit)]
        .flat()
        .view({group_->world(), shard_elements})
        .copy_(master.narrow(1, arena_offset, shard_elements));
  }
}

Stage1::Stage1(std::vector<ModelUnit> model, ProcessGroup* group, const EngineSettings& settings)
    : ZeroEngine(std::move(model), group, settings), gathers_(static_cast<size_t>(units())) {}

void Stage1::BeforeForward(int unit) {
  PendingCollective& gather = gathers_[static_cast<size_t>(unit)];
  group_->Await(gather);
  gather = {};
}

void Stage1::AwaitParameters() {
  for (int unit = 0; unit < units(); ++unit) BeforeForward(unit);
}

void Stage1::AfterBackward() {
  for (int unit = units() - 1; unit >= 0; --unit) ReduceGradients(unit);
}

// The arena has the shards of the units from the last to the first.
SubGroups Stage1::GroupsOfStep() {
  if (!settings_.overlap) return {};
  SubGroups groups;
  for (int unit = 0; unit < units(); ++unit) {
    const dynamiccl::zero::Shard own = partition_->shard(unit, group_->rank());
    if (own.elements > 0) groups.begins.push_back(own.arena_offset);
  }
  groups.updated = [this](int64_t begin) { GatherFrom(begin); };
  return groups;
}

void Stage1::GatherFrom(int64_t begin) {
  for (; next_to_gather_ < units(); ++next_to_gather_) {
    const dynamiccl::zero::Shard own = partition_->shard(next_to_gather_, group_->rank());
    if (own.elements > 0 && own.arena_offset < begin) return;
    const size_t index = static_cast<size_t>(next_to_gather_);
    gathers_[index] =
        GatherShards(next_to_gather_, Shard(parameter_shard_, next_to_gather_), parameters_[index].flat(),
                     {DYNAMICCL_PHASE_OPTIMIZER, DYNAMICCL_ROLE_POST_STEP_GATHER});
    if (!settings_.overlap) BeforeForward(next_to_gather_);
  }
}

void Stage1::PublishParameters() {
  RefreshParameterShard();
  GatherFrom(0);
  next_to_gather_ = 0;
}

}  // namespace dynamiccl::zero
