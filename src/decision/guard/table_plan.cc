// SPDX-License-Identifier: Apache-2.0
// A key with arms uses them by the number of the step that a call lies in; other keys are sampled by the
// call's ordinal.
#include "src/decision/guard/table_plan.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// True if the key uses arms in this plan.
bool DrawsArms(const TablePlan& plan, const KeyPlan& key) {
  return plan.step_calls > 0 && !key.arms.empty();
}

// Number of the step since the plan's origin; -1 before it.
int64_t StepOf(const TablePlan& plan, uint64_t call) {
  return call < plan.step_origin ? -1 : static_cast<int64_t>((call - plan.step_origin) / plan.step_calls);
}

// Index of the arm that the key uses in this step, or -1. In each cycle of spacing x arms steps every arm is
// used once. The first cycle begins with the first arm, later ones anywhere: so two keys do not change their
// arms together.
int ArmAt(const TablePlan& plan, const KeyPlan& key, int64_t step) {
  if (step < 0) return -1;
  const auto length = static_cast<uint32_t>(key.spacing * key.arms.size());
  const auto in_cycle = static_cast<uint32_t>(step % length);
  const auto cycle = static_cast<uint32_t>(step / length);
  const uint32_t drawn = cycle + static_cast<uint32_t>(plan.step_origin);
  if (cycle == 0) {
    const bool uses_arm = in_cycle % key.spacing == PlaceIn(key.spacing, KeyCode(key.key), drawn);
    return uses_arm ? static_cast<int>(in_cycle / key.spacing) : -1;
  }
  const uint32_t place = (in_cycle + PlaceIn(length, KeyCode(key.key), drawn)) % length;
  return place % key.spacing == 0 ? static_cast<int>(place / key.spacing) : -1;
}

// True if the call is left to NCCL as a sample. Samples are denser while little is known.
bool IsDefaultSample(const KeyPlan& key, bool steady, uint32_t ordinal) {
  const uint32_t period = steady || ordinal >= kMiddleCalls ? kSparsePeriod
                          : ordinal < kDenseCalls           ? kDensePeriod
                                                            : kMiddlePeriod;
  return ordinal % period == PlaceIn(period, KeyCode(key.key) + 1, ordinal / period);
}

}  // namespace

uint32_t KeyCode(const TableKey& key) {
  return static_cast<uint32_t>(key.collective) << 16 | static_cast<uint32_t>(key.role) << 8 |
         key.size_class.index;
}

// The finaliser of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
// 2014.
uint32_t PlaceIn(uint32_t period, uint32_t code, uint32_t block) {
  uint64_t mixed = (uint64_t{code} << 32 | block) + 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return static_cast<uint32_t>((mixed ^ mixed >> 31) % period);
}

PlannedUse UseOf(const TablePlan& plan, const KeyPlan& key, bool default_samples,
                 const PlaceInVersion& place) {
  if (DrawsArms(plan, key)) {
    const int arm = ArmAt(plan, key, StepOf(plan, place.call));
    if (arm < 0) return {};
    const bool is_nccls = key.arms[static_cast<size_t>(arm)].leaves_nccl_alone();
    return {is_nccls ? CallUse::kDefaultSample : CallUse::kTrial, arm};
  }
  if (default_samples && IsDefaultSample(key, key.steady, place.ordinal))
    return {CallUse::kDefaultSample, -1};
  return {};
}

bool IsTimed(const TablePlan& plan, const KeyPlan& key, bool default_samples, const PlaceInVersion& place) {
  if (DrawsArms(plan, key)) {
    const int64_t step = StepOf(plan, place.call);
    if (step < 0) return false;
    const auto block = static_cast<uint32_t>(step / kTimedStepPeriod);
    return step % kTimedStepPeriod == PlaceIn(kTimedStepPeriod, 0, block);
  }
  const uint32_t ordinal = place.ordinal;
  if (default_samples && !key.steady && ordinal < kDenseCalls) return true;
  if (!default_samples && !key.steady && ordinal < kCalmCalls)
    return ordinal % kCalmPeriod == PlaceIn(kCalmPeriod, KeyCode(key.key), ordinal / kCalmPeriod);
  // A key at NCCL's choice has no samples beside it, but is timed as often as one with sparse samples.
  const bool steady = key.steady || !default_samples;
  return IsDefaultSample(key, steady, ordinal) || IsDefaultSample(key, steady, ordinal + 1);
}

}  // namespace dynamiccl
