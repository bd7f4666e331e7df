// SPDX-License-Identifier: Apache-2.0
// Slots are an array over all possible keys, so a lookup needs no search while NCCL waits for an answer.
#include "src/decision/guard/planned_table.h"

#include <utility>

namespace dynamiccl {
namespace {

PlannedCall Answer(const KeyPlan& key, const PlannedUse& use) {
  switch (use.use) {
    case CallUse::kTrial:
      return {use.config, use.use};
    case CallUse::kDefaultSample:
      return {kLeaveNcclAlone, use.use};
    case CallUse::kChoice:
      break;
  }
  return {key.choice, use.use};
}

}  // namespace

size_t PlannedTable::IndexOf(const TableKey& key) {
  return (static_cast<size_t>(key.collective) * kRoles + static_cast<size_t>(key.role)) * kSizeClasses +
         key.size_class.index;
}

PlannedTable::PlannedTable(TablePlan plan)
    : plan_(std::move(plan)), slots_(size_t{kTunableCollectives} * kRoles * kSizeClasses) {
  for (size_t i = 0; i < plan_.keys.size(); ++i) {
    slots_[IndexOf(plan_.keys[i].key)].listed = static_cast<uint16_t>(i + 1);
  }
}

CollectiveConfig PlannedTable::ChoiceOf(const TableKey& key, const CollectiveConfig& policy_choice) const {
  const Slot& slot = slots_[IndexOf(key)];
  if (slot.listed != 0) return Listed(slot).choice;
  return plan_.others_use_policy ? policy_choice : kLeaveNcclAlone;
}

PlannedCall PlannedTable::At(const TableKey& key, const CollectiveConfig& policy_choice,
                             uint64_t call_number) {
  Slot& slot = slots_[IndexOf(key)];
  if (slot.asked && slot.last_call != call_number) ++slot.ordinal;
  slot.asked = true;
  slot.last_call = call_number;
  const PlaceInVersion place{slot.ordinal, call_number};
  const CollectiveConfig choice = ChoiceOf(key, policy_choice);
  slot.samples = !choice.leaves_nccl_alone();
  if (slot.listed == 0) {
    // Copying this entry allocates nothing, because its list of arms is empty.
    const KeyPlan unlisted{key, choice, {}};
    return Answer(unlisted, UseOf(plan_, unlisted, slot.samples, place));
  }
  const KeyPlan& listed = Listed(slot);
  return Answer(listed, UseOf(plan_, listed, slot.samples, place));
}

bool PlannedTable::TimesNext(const TableKey& key, uint64_t call_number) const {
  const Slot& slot = slots_[IndexOf(key)];
  const PlaceInVersion next{slot.asked ? slot.ordinal + 1 : 0, call_number};
  if (slot.listed != 0) return IsTimed(plan_, Listed(slot), slot.samples, next);
  const KeyPlan unlisted{key, {}, {}};
  return IsTimed(plan_, unlisted, slot.samples, next);
}

}  // namespace dynamiccl
