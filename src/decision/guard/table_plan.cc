// SPDX-License-Identifier: Apache-2.0
// The number of a call's step decides which arm the call uses. For keys without arms, the call's ordinal
// decides whether the call is a sample of NCCL's choice.
#include "src/decision/guard/table_plan.h"

#include <algorithm>

#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

// Takes the place of a KeyCode when common arms are drawn. It is above every KeyCode.
constexpr uint32_t kCommonCode = 1u << 19;

bool DrawsCommon(const TablePlan& plan, const KeyPlan& key) {
  return plan.step_calls > 0 && key.joins && !plan.common.empty();
}

// True if the key uses arms in this plan.
bool DrawsArms(const TablePlan& plan, const KeyPlan& key) {
  return plan.step_calls > 0 && !key.arms.empty();
}

// Returns the number of the call's step, counted from the plan's origin; -1 before the origin.
int64_t StepOf(const TablePlan& plan, uint64_t call) {
  return call < plan.step_origin ? -1 : static_cast<int64_t>((call - plan.step_origin) / plan.step_calls);
}

// The input of one draw: the number of arms, the steps between uses, and the code that makes draws differ.
struct Draw {
  uint32_t arms = 0;
  uint32_t spacing = 1;
  uint32_t code = 0;
};

// Returns the index of the arm that is used in this step; -1: none. In each cycle of spacing x arms steps,
// every arm is used once. The first cycle uses the arms in their order. A later cycle begins with an arm
// drawn at random, so two keys do not always change arms at the same steps.
int ArmAt(const TablePlan& plan, const Draw& draw, int64_t step) {
  if (step < 0) return -1;
  const uint32_t length = draw.spacing * draw.arms;
  const auto in_cycle = static_cast<uint32_t>(step % length);
  const auto cycle = static_cast<uint32_t>(step / length);
  const uint32_t drawn = cycle + static_cast<uint32_t>(plan.step_origin);
  if (cycle == 0) {
    const bool uses_arm = in_cycle % draw.spacing == PlaceIn(draw.spacing, draw.code, drawn);
    return uses_arm ? static_cast<int>(in_cycle / draw.spacing) : -1;
  }
  const uint32_t place = (in_cycle + PlaceIn(length, draw.code, drawn)) % length;
  return place % draw.spacing == 0 ? static_cast<int>(place / draw.spacing) : -1;
}

PlannedUse UseOfArms(const TablePlan& plan, const KeyPlan& key, uint64_t call) {
  const Draw draw{static_cast<uint32_t>(key.arms.size()), key.spacing, KeyCode(key.key)};
  const int arm = ArmAt(plan, draw, StepOf(plan, call));
  if (arm < 0) return {};
  const CollectiveConfig& config = key.arms[static_cast<size_t>(arm)];
  if (config.leaves_nccl_alone()) return {CallUse::kDefaultSample, arm, {}};
  return {CallUse::kTrial, arm, config};
}

// Returns the index of the common arm that is used in this step; -1: none.
int CommonArmAt(const TablePlan& plan, int64_t step) {
  const auto arms = static_cast<uint32_t>(plan.common.size());
  if (plan.common_pause == 0) return ArmAt(plan, {arms, plan.common_spacing, kCommonCode}, step);
  if (step < 0) return -1;
  const auto number = static_cast<uint32_t>(step);
  const auto is_drawn = [number](uint32_t period, uint32_t code) {
    return number % period == PlaceIn(period, code, number / period);
  };
  if (is_drawn(plan.common_pause, kCommonCode)) return -1;
  const bool challenges = arms > 1 && is_drawn(plan.common_spacing, kCommonCode + 1);
  return challenges ? static_cast<int>(1 + number / plan.common_spacing % (arms - 1)) : 0;
}

PlannedUse UseOfCommon(const TablePlan& plan, const KeyPlan& key, uint64_t call) {
  const int arm = CommonArmAt(plan, StepOf(plan, call));
  if (arm < 0) return {};
  const CollectiveConfig& config = plan.common[static_cast<size_t>(arm)];
  const bool has_it = NcclConfigs(key.key.collective)[ConfigIndex(config.algorithm, config.protocol)];
  if (!has_it || config == key.choice) return {};
  return {CallUse::kTrial, -1, config};
}

// True if the call is left to NCCL as a sample. The first calls of a version are sampled more often, because
// little is known then.
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

bool HasArms(const TablePlan& plan) {
  return !plan.common.empty() || std::any_of(plan.keys.begin(), plan.keys.end(),
                                             [](const KeyPlan& key) { return !key.arms.empty(); });
}

bool BeginsStep(const TablePlan& plan, uint64_t call) {
  return plan.step_calls > 0 && call >= plan.step_origin && (call - plan.step_origin) % plan.step_calls == 0;
}

PlannedUse UseOf(const TablePlan& plan, const KeyPlan& key, bool default_samples,
                 const PlaceInVersion& place) {
  if (DrawsCommon(plan, key)) return UseOfCommon(plan, key, place.call);
  if (DrawsArms(plan, key)) return UseOfArms(plan, key, place.call);
  if (default_samples && IsDefaultSample(key, key.steady, place.ordinal))
    return {CallUse::kDefaultSample, -1, {}};
  return {};
}

bool IsTimed(const TablePlan& plan, const KeyPlan& key, bool default_samples, const PlaceInVersion& place) {
  if (DrawsCommon(plan, key) || DrawsArms(plan, key)) {
    const int64_t step = StepOf(plan, place.call);
    if (step < 0) return false;
    const auto block = static_cast<uint32_t>(step / kTimedStepPeriod);
    return step % kTimedStepPeriod == PlaceIn(kTimedStepPeriod, 0, block);
  }
  const uint32_t ordinal = place.ordinal;
  if (default_samples && !key.steady && ordinal < kDenseCalls) return true;
  if (!default_samples && !key.steady && ordinal < kCalmCalls)
    return ordinal % kCalmPeriod == PlaceIn(kCalmPeriod, KeyCode(key.key), ordinal / kCalmPeriod);
  // A key whose choice is NCCL's takes no samples of NCCL's choice, but its calls are timed as often as those
  // of a key with sparse samples.
  const bool steady = key.steady || !default_samples;
  return IsDefaultSample(key, steady, ordinal) || IsDefaultSample(key, steady, ordinal + 1);
}

}  // namespace dynamiccl
