// SPDX-License-Identifier: Apache-2.0
// Which use a call has, from its ordinal alone. Trials come first: the first round, the pause, the rounds
// that repeat it. A call that is no trial may be a sample of NCCL's choice. Everything else uses the key's
// choice.
#include "src/decision/guard/table_plan.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// Number of the trial call at `since` calls after trials began, counted from 0; -1: the call uses the choice.
// Calls come in blocks of `group` trials, one call of the choice at a random place among them, and key.rest
// more calls of the choice after them.
int64_t NumberAt(const KeyPlan& key, uint32_t group, uint32_t since) {
  const uint32_t block = since / (group + 1 + key.rest);
  const uint32_t choice = PlaceIn(group + 1, KeyCode(key.key), block);
  const uint32_t place = since % (group + 1 + key.rest);
  if (place == choice || place > group) return -1;
  return int64_t{block} * group + place - (place > choice ? 1 : 0);
}

// The trial at a call of the pause, or -1: only known trials go on there.
int KnownTrialAt(const TablePlan& plan, const KeyPlan& key, uint32_t since) {
  if (key.known_trials == 0) return -1;
  const int64_t number = NumberAt(key, std::min<uint32_t>(plan.trials_a_choice, key.known_trials), since);
  return number < 0 ? -1 : static_cast<int>(number % key.known_trials);
}

// Index of the trial that this call makes, or -1. In a first round each trial is made once, and the pause
// follows before any is repeated.
int TrialAt(const TablePlan& plan, const KeyPlan& key, uint32_t ordinal) {
  const auto trials = static_cast<int64_t>(key.trials.size());
  const auto group = static_cast<uint32_t>(std::min<int64_t>(plan.trials_a_choice, trials));
  if (group == 0) return -1;
  uint32_t since = ordinal;
  if (key.first_round) {
    if (ordinal < plan.trial_from) return -1;
    since -= plan.trial_from;
    const int64_t first = NumberAt(key, group, since);
    const auto round = static_cast<uint32_t>((trials + group - 1) / group * (group + 1 + key.rest));
    if (since < round) return first < trials ? static_cast<int>(first) : -1;
    since -= round;
    if (since < key.pause) return KnownTrialAt(plan, key, since);
    since -= key.pause;
  }
  const int64_t repeat = NumberAt(key, group, since);
  return repeat >= 0 && repeat / trials < kMaxRounds ? static_cast<int>(repeat % trials) : -1;
}

// True if the call is left to NCCL as a sample. Samples are denser while little is known.
bool IsDefaultSample(const KeyPlan& key, bool steady, uint32_t ordinal) {
  const uint32_t period = steady || ordinal >= kMiddleCalls ? kSparsePeriod
                          : ordinal < kDenseCalls           ? kDensePeriod
                                                            : kMiddlePeriod;
  return ordinal % period == PlaceIn(period, KeyCode(key.key) + 1, ordinal / period);
}

PlannedUse UseAt(const TablePlan& plan, const KeyPlan& key, bool default_samples, uint32_t ordinal) {
  const int trial = TrialAt(plan, key, ordinal);
  if (trial >= 0) return {CallUse::kTrial, trial};
  if (default_samples && IsDefaultSample(key, key.steady, ordinal)) return {CallUse::kDefaultSample, -1};
  return {};
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
  const bool at_stake = default_samples || !key.trials.empty();
  if (at_stake && !key.steady && ordinal < kDenseCalls) return true;
  if (!at_stake && !key.steady && ordinal < kCalmCalls)
    return ordinal % kCalmPeriod == PlaceIn(kCalmPeriod, KeyCode(key.key), ordinal / kCalmPeriod);
  if (UseAt(plan, key, default_samples, ordinal).use != CallUse::kChoice) return true;
  // A key at NCCL's choice has no samples beside it, but is timed as often as one with sparse samples.
  const bool steady = key.steady || !at_stake;
  const bool watched = IsDefaultSample(key, steady, ordinal) || IsDefaultSample(key, steady, ordinal + 1);
  return watched || UseAt(plan, key, default_samples, ordinal + 1).use != CallUse::kChoice;
}

}  // namespace dynamiccl
