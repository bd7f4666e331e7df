// SPDX-License-Identifier: Apache-2.0
// What a table version says beside its policy: for which keys the choice is another one, what is tried there,
// and at which of a key's calls. Part of the version, so exploring needs no agreement of its own. What a call
// does is a pure function of plan, key and the call's ordinal: how many calls of the key came before it under
// this version, which all ranks count alike.
#pragma once

#include <cstdint>
#include <vector>

#include "src/collective/collective_config.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// The prior's best five and neighbours in channels.
inline constexpr int kMaxTrials = 8;
// A key's first calls under a choice that is not NCCL's own: all are timed, and one in kDensePeriod is left
// to NCCL. So what is not proven yet is used in half of the calls, and what is several times slower is seen
// within a dozen.
inline constexpr uint32_t kDenseCalls = 48;
inline constexpr uint32_t kDensePeriod = 2;
// At NCCL's choice and without trials nothing is at stake: 24 times, what the timing detector learns from,
// are spread over so many calls.
inline constexpr uint32_t kCalmCalls = 96;
inline constexpr uint32_t kCalmPeriod = 4;
// Then for a while one in kMiddlePeriod and a call beside it: enough for the test to see what is 1.2x slower.
inline constexpr uint32_t kMiddleCalls = 192;
inline constexpr uint32_t kMiddlePeriod = 12;
// From then on: one sample of NCCL's choice and one call beside it, 1 % of the calls.
inline constexpr uint32_t kSparsePeriod = 200;
// Rounds of a key's trials; then they have an answer or none that probing could afford.
inline constexpr uint32_t kMaxRounds = 40;

enum class CallUse : uint8_t {
  kChoice,         // what the version chose for the key
  kDefaultSample,  // left to NCCL, to compare with
  kTrial,
};

struct KeyPlan {
  TableKey key;
  CollectiveConfig choice;               // kLeaveNcclAlone: NCCL's own
  std::vector<CollectiveConfig> trials;  // at most kMaxTrials
  // The key's calls are hidden behind computation: it is compared as part of the whole table, by blocks.
  bool in_blocks = false;
  // Each trial has not been made yet: one call each, then a pause. Otherwise they go on at once.
  bool first_round = true;
  // The choice was judged under versions before this one: its samples go on as they were, one in
  // kSparsePeriod.
  bool steady = false;
  // Calls of the key between that call of a trial and its second: in them a trial that failed is taken out.
  uint16_t pause = 32;
  // Calls of the choice after each group of trials: what trials may cost a call is spread over them.
  uint16_t rest = 0;
  // So many of the trials, the first ones, were made before the fabric changed and did no harm: the pause is
  // not theirs.
  uint8_t known_trials = 0;
};

struct TablePlan {
  bool others_use_policy = true;  // keys that are not listed: the policy's choice, else NCCL's
  uint32_t trial_from = 4;        // ordinal of the first trial
  // So many trials of a key, or as many as it has, for one call of its choice: each trial is compared with
  // that call, so more of them share it and have an answer sooner.
  uint32_t trials_a_choice = 3;
  // Above 0: keys in_blocks use their choice in one block of so many calls of the communicator and NCCL's in
  // the next, in the order choice, NCCL, NCCL, choice.
  uint32_t block_calls = 0;
  std::vector<KeyPlan> keys;
};

// A call under a version.
struct PlaceInVersion {
  uint32_t ordinal = 0;  // calls of its key before it
  uint64_t call = 0;     // calls of the communicator before it
};

// One number for a key, below 2^19.
uint32_t KeyCode(const TableKey& key);

struct PlannedUse {
  CallUse use = CallUse::kChoice;
  int trial = -1;  // index in KeyPlan::trials

  friend bool operator==(const PlannedUse&, const PlannedUse&) = default;
};

// `default_samples`: the choice is not NCCL's own.
PlannedUse UseOf(const TablePlan& plan, const KeyPlan& key, bool default_samples,
                 const PlaceInVersion& place);
// The block of a call uses NCCL's choice for the keys in_blocks.
bool InNcclsBlock(const TablePlan& plan, uint64_t call);
// A place in the period that changes from period to period: programs repeat their calls in steps, and a fixed
// place would always meet the same calls of a step.
uint32_t PlaceIn(uint32_t period, uint32_t code, uint32_t block);
// Whether the profiler's window is open at this call of the key.
bool IsTimed(const TablePlan& plan, const KeyPlan& key, bool default_samples, uint32_t ordinal);

}  // namespace dynamiccl
