// SPDX-License-Identifier: Apache-2.0
#include "src/decision/guard/table_plan.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// Number of the trial call in this block of the period, counted from the first repeated one; -1: none.
int64_t RepeatAt(const TablePlan& plan, const KeyPlan& key, uint32_t block) {
  if (!key.first_round) return block;
  const size_t trials = key.trials.size();
  const uint64_t from = trials + (key.pause + plan.trial_period - 1) / plan.trial_period;
  return block < from ? -1 : static_cast<int64_t>(block - from);
}

// The trial of this call, or -1. A first round of one call each, and the pause, before any is repeated.
int TrialAt(const TablePlan& plan, const KeyPlan& key, uint32_t ordinal) {
  const uint32_t begins = key.first_round ? plan.trial_from : 0;
  if (key.trials.empty() || plan.trial_period == 0 || ordinal < begins) return -1;
  const uint32_t since = ordinal - begins;
  const uint32_t block = since / plan.trial_period;
  if (since % plan.trial_period != PlaceIn(plan.trial_period, KeyCode(key.key), block)) return -1;
  const auto trials = static_cast<int64_t>(key.trials.size());
  if (key.first_round && block < trials) return static_cast<int>(block);
  const int64_t repeat = RepeatAt(plan, key, block);
  return repeat >= 0 && repeat / trials < kMostRounds ? static_cast<int>(repeat % trials) : -1;
}

bool IsDefaultSample(const KeyPlan& key, uint32_t ordinal) {
  const uint32_t period = ordinal < kDenseCalls ? kDensePeriod : kSparsePeriod;
  return ordinal % period == PlaceIn(period, KeyCode(key.key) + 1, ordinal / period);
}

PlannedUse UseAt(const TablePlan& plan, const KeyPlan& key, bool default_samples, uint32_t ordinal) {
  const int trial = TrialAt(plan, key, ordinal);
  if (trial >= 0) return {CallUse::kTrial, trial};
  if (default_samples && IsDefaultSample(key, ordinal)) return {CallUse::kDefaultSample, -1};
  return {};
}

}  // namespace

uint32_t KeyCode(const TableKey& key) {
  return static_cast<uint32_t>(key.collective) << 16 | static_cast<uint32_t>(key.role) << 8 |
         key.size_class.index;
}

// The finaliser of SplitMix64.
uint32_t PlaceIn(uint32_t period, uint32_t code, uint32_t block) {
  uint64_t mixed = (uint64_t{code} << 32 | block) + 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return static_cast<uint32_t>((mixed ^ mixed >> 31) % period);
}

bool InNcclsBlock(const TablePlan& plan, uint64_t call) {
  if (plan.block_calls == 0) return false;
  const uint64_t block = call / plan.block_calls % 4;
  return block == 1 || block == 2;
}

PlannedUse UseOf(const TablePlan& plan, const KeyPlan& key, bool default_samples,
                 const PlaceInVersion& place) {
  if (key.in_blocks) {
    return {InNcclsBlock(plan, place.call) ? CallUse::kDefaultSample : CallUse::kChoice, -1};
  }
  return UseAt(plan, key, default_samples, place.ordinal);
}

bool IsTimed(const TablePlan& plan, const KeyPlan& key, bool default_samples, uint32_t ordinal) {
  if (ordinal < kDenseCalls) return true;
  if (UseAt(plan, key, default_samples, ordinal).use != CallUse::kChoice) return true;
  // A key at NCCL's choice has no samples beside it, but is watched as often.
  const bool watched = IsDefaultSample(key, ordinal) || IsDefaultSample(key, ordinal + 1);
  return watched || UseAt(plan, key, default_samples, ordinal + 1).use != CallUse::kChoice;
}

}  // namespace dynamiccl
