// SPDX-License-Identifier: Apache-2.0
// What a table version adds to its policy: keys with another choice, candidates that are tried there, and at
// which of a key's calls. It is part of the version, so exploring needs no agreement of its own. What a call
// uses is a pure function of the plan, the key and the call's ordinal, which is the number of calls of the
// key before it under this version. All ranks count that alike, so all ranks use the same config.
//
// The calls of one key with a choice of its own (C) and three trials (1 2 3) that were not made yet:
//     C C C C  1 C 2 3  C..C  C.......C  1 2 C 3  C..C  C 1 2 3  C..C  ...
//              round 1  rest  pause      round 2  rest  round 3  rest
// Any C outside a group of trials may be a sample, which is left to NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/collective/collective_config.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// Trials of a key at most: the prior's best five, and neighbours of the best one in channels
// (probe_candidates.h).
inline constexpr int kMaxTrials = 8;
// A key's first calls under a choice that is not NCCL's own: all are timed, and one in kDensePeriod is left
// to NCCL. So a choice that is not proven yet is used in half of the calls, and one that is several times
// slower is seen within a dozen.
inline constexpr uint32_t kDenseCalls = 48;
inline constexpr uint32_t kDensePeriod = 2;
// A key's first calls at NCCL's choice and without trials, of which one in kCalmPeriod is timed: nothing is
// at stake there. That makes 24 times, which is what the timing detector learns from
// (TimeReference::kLearnt).
inline constexpr uint32_t kCalmCalls = 96;
inline constexpr uint32_t kCalmPeriod = 4;
// After the dense calls, up to this ordinal, one call in kMiddlePeriod is left to NCCL and timed with a call
// beside it. That is enough for the test to see a choice that is 1.2x slower.
inline constexpr uint32_t kMiddleCalls = 192;
inline constexpr uint32_t kMiddlePeriod = 12;
// From then on one call in 200 is a sample of NCCL's choice and is timed with one call beside it: 1 % of the
// calls.
inline constexpr uint32_t kSparsePeriod = 200;
// Rounds of a key's trials in one version. After 40 they have an answer, or none that probing could afford.
inline constexpr uint32_t kMaxRounds = 40;

// What a call is for.
enum class CallUse : uint8_t {
  kChoice,         // uses what the version chose for the key
  kDefaultSample,  // left to NCCL, to compare the choice with
  kTrial,          // uses a candidate
};

// What a version says about one key.
struct KeyPlan {
  TableKey key;
  CollectiveConfig choice;               // kLeaveNcclAlone: NCCL's own
  std::vector<CollectiveConfig> trials;  // at most kMaxTrials, none of them NCCL's own
  // The key's calls are hidden behind computation. It is compared as part of the whole table, by blocks of
  // steps, and has no trials or samples.
  bool in_blocks = false;
  // Some trial was not made yet: each is made once, then there is a pause. If false, the trials are repeated
  // at once.
  bool first_round = true;
  // The choice was judged under earlier versions, so its samples go on as they were, one in kSparsePeriod.
  bool steady = false;
  // Calls of the key between the first round of trials and the second. In that time a trial that failed is
  // taken out by another version.
  uint16_t pause = 32;
  // Calls of the choice after each group of trials: the cost of trials is spread over them (trial_pace.h).
  uint16_t rest = 0;
  // The first `known_trials` of the trials were made before the fabric changed and did no harm. They go on
  // during the pause.
  uint8_t known_trials = 0;
};

// The plan of one version. A value; the bytes of it are in docs/formats/table_plan.md.
struct TablePlan {
  bool others_use_policy = true;  // keys that are not listed: true the policy's choice, false NCCL's
  uint32_t trial_from = 4;        // ordinal of a key's first trial
  // Trials of a key, or all that it has, for one call of its choice. Each of them is compared with that call,
  // so more trials share it and have an answer sooner.
  uint32_t trials_a_choice = 3;
  // Above 0: keys in_blocks use their choice in one block of this many calls of the communicator and NCCL's
  // in the next, in the order choice, NCCL, NCCL, choice.
  uint32_t block_calls = 0;
  std::vector<KeyPlan> keys;  // each key once
};

// A call's place among the calls under its version.
struct PlaceInVersion {
  uint32_t ordinal = 0;  // number of calls of its key before it
  uint64_t call = 0;     // number of calls of the communicator before it
};

// One number for a key, below 2^19. Equal keys have equal codes on all ranks.
uint32_t KeyCode(const TableKey& key);

// What a call uses, without its config.
struct PlannedUse {
  CallUse use = CallUse::kChoice;
  int trial = -1;  // index in KeyPlan::trials; -1: no trial

  friend bool operator==(const PlannedUse&, const PlannedUse&) = default;
};

// What the call at `place` uses. `default_samples`: the choice is not NCCL's own, so samples of NCCL's are
// taken.
PlannedUse UseOf(const TablePlan& plan, const KeyPlan& key, bool default_samples,
                 const PlaceInVersion& place);
// True if call number `call` under the version is in a block that uses NCCL's choice for the keys in_blocks.
bool InNcclsBlock(const TablePlan& plan, uint64_t call);
// A pseudo-random place below `period` for number `block` of the periods of the key with this code. A fixed
// place would always meet the same calls of a training step, because programs repeat their calls.
uint32_t PlaceIn(uint32_t period, uint32_t code, uint32_t block);
// True if the ranks time the call with this ordinal of the key.
bool IsTimed(const TablePlan& plan, const KeyPlan& key, bool default_samples, uint32_t ordinal);

// A table plan as bytes, as it travels with a table version. Grammar: docs/formats/table_plan.md. The message
// that carries it is authenticated. A reader refuses a plan that it does not understand completely; then no
// rank uses the version.

// Returns the plan, shortened where it must be to fit into one message of 7,936 bytes. 213 keys fit with all
// eight trials. Of a longer plan the last keys lose their trials first. More than 608 keys do not fit even
// without trials: then keys that are not listed are left to NCCL, and so are the last keys.
TablePlan Fitting(TablePlan plan);
// Returns the bytes of a plan that fits.
std::vector<std::byte> EncodePlan(const TablePlan& plan);
// Reads such bytes; nothing if they are cut short, damaged, of another version, or name something that NCCL
// does not have.
std::optional<TablePlan> DecodePlan(std::span<const std::byte> bytes);

}  // namespace dynamiccl
