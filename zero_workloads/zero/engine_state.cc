// SPDX-License-Identifier: Apache-2.0
// Implements the functions of ZeroEngine that checkpoints use: which elements this rank holds, and the values
// that exist once.
#include "zero_workloads/models/engine_state.h"

#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {

std::vector<StateTensor> ZeroEngine::StateTensors() const {
  return optimizer_->States();
}

std::vector<StateRange> ZeroEngine::StateRanges() const {
  std::vector<StateRange> ranges;
  const int first = holds_all_arenas() ? 0 : group_->rank(),
            last = holds_all_arenas() ? group_->world() - 1 : first;
  for (int arena = first; arena <= last; ++arena) {
    for (int unit = 0; unit < units(); ++unit) {
      const auto [shard, shard_elements, arena_offset] = partition_->shard(unit, arena);
      const FlatParameters& parameters = parameters_[static_cast<size_t>(unit)];
      // Distance from an element's index in the unit's flat tensor to its index in the state tensor.
      const int64_t place = (arena - first) * partition_->arena_elements(arena) + arena_offset - shard;
      parameters.ForEachParameter(shard, shard + shard_elements, [&](size_t i, int64_t begin, int64_t end) {
        ranges.push_back({&parameters.unit().parameters[i], begin, end, place + parameters.offset(i) + begin,
                          arena == group_->rank() && replica_rank() == 0});
      });
    }
  }
  return ranges;
}

StateValues ZeroEngine::Values() const {
  StateValues values = {{"optimizer.steps", std::to_string(optimizer_->steps())}};
  if (!loss_scale_.dynamic()) return values;
  const LossScale::State scale = loss_scale_.state();
  values["loss_scale.value"] = fmt::format("{:a}", scale.value);
  values["loss_scale.clean_steps"] = std::to_string(scale.clean_steps);
  values["loss_scale.overflows_left"] = std::to_string(scale.overflows_left);
  return values;
}

void ZeroEngine::StateReplaced(const StateValues& values) {
  if (values.contains("optimizer.steps")) optimizer_->set_steps(std::stoll(values.at("optimizer.steps")));
  // The checkpoint has no loss scale if the saving run had no dynamic one. This run then starts with its own
  // first scale.
  if (values.contains("loss_scale.value")) {
    loss_scale_.Restore({std::stod(values.at("loss_scale.value")),
                         std::stoll(values.at("loss_scale.clean_steps")),
                         std::stoll(values.at("loss_scale.overflows_left"))});
  }
  PublishParameters();
}

}  // namespace dynamiccl::zero
