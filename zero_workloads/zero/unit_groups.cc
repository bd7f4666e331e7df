// SPDX-License-Identifier: Apache-2.0
// GroupsOf says which group each unit of the model belongs to. The units of the engine and the calls of its
// hooks are made from the same numbers, so they agree.
#include "zero_workloads/zero/unit_groups.h"

namespace dynamiccl::zero {
namespace {

// The group of each unit.
std::vector<int> GroupsOf(const std::vector<ModelUnit>& units, int64_t size) {
  std::vector<int> groups;
  int group = -1;
  int64_t members = size;
  for (const ModelUnit& unit : units) {
    if (unit.is_root || members == size) {
      ++group;
      members = 0;
    }
    // A unit of the root counts as a full group, so the unit after it starts a new one.
    members = unit.is_root ? size : members + 1;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace

std::vector<ModelUnit> GroupUnits(const std::vector<ModelUnit>& units, int64_t size) {
  const std::vector<int> groups = GroupsOf(units, size);
  std::vector<ModelUnit> grouped;
  for (size_t unit = 0; unit < units.size(); ++unit) {
    const ParameterList& parameters = units[unit].parameters;
    if (static_cast<size_t>(groups[unit]) == grouped.size()) {
      grouped.push_back(units[unit]);
    } else {
      grouped.back().parameters.insert(grouped.back().parameters.end(), parameters.begin(), parameters.end());
    }
  }
  return grouped;
}

GroupedUnitHooks::GroupedUnitHooks(const std::vector<ModelUnit>& units, int64_t size, UnitHooks* engine)
    : group_(GroupsOf(units, size)), engine_(engine) {
  group_.push_back(-1);
}

void GroupedUnitHooks::BeforeForward(int unit) {
  const size_t index = static_cast<size_t>(unit);
  if (index == 0 || group_[index - 1] != group_[index]) engine_->BeforeForward(group_[index]);
}

void GroupedUnitHooks::AfterForward(int unit, const at::Tensor& output) {
  const size_t index = static_cast<size_t>(unit);
  if (group_[index + 1] != group_[index]) engine_->AfterForward(group_[index], output);
}

}  // namespace dynamiccl::zero
