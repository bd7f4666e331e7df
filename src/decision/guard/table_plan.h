// SPDX-License-Identifier: Apache-2.0
// A table plan is what a table version adds to its policy: keys with another choice, configs that are tried
// there
// ("arms"), and the training steps that use them. It is part of the version, so exploring needs no agreement
// of its own. What a call uses is a pure function of the plan, the key, the number of the call on its
// communicator and its ordinal, which is the number of calls of the key before it under this version. All
// ranks count both alike, so all ranks use the same config.
//
// The steps of one key with a choice of its own (C), three arms (1 2 3) and a spacing of 4; all of the key's
// calls in one step use the same config, and other keys draw independently:
//     C C 1 C C C 2 C C C 3 C | C 3 C C C 1 C C C 2 C C | ...
// While a plan has common arms, keys have none of their own: in the same steps all keys that join use the
// same config.
// A key without arms uses its choice, and any call of it may be a sample, which is left to NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/collective/collective_config.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// A key's first calls under a choice that is not NCCL's own: all are timed, and one in kDensePeriod is left
// to NCCL. So a choice that is not proven yet is used in half of the calls, and one that is several times
// slower is seen within a dozen.
inline constexpr uint32_t kDenseCalls = 48;
inline constexpr uint32_t kDensePeriod = 2;
// A key's first calls at NCCL's choice and without arms, of which one in kCalmPeriod is timed: nothing is
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
// One step in 12 is timed, all calls of keys with arms, whatever they use: so that what timing costs is no
// effect of a config.
inline constexpr uint32_t kTimedStepPeriod = 12;
// Arms of a key at most: eight that are tried, and NCCL's own beside a choice that is not NCCL's.
inline constexpr size_t kMaxArmsOfPlan = 9;

// What a call is for.
enum class CallUse : uint8_t {
  kChoice,         // uses what the version chose for the key
  kDefaultSample,  // left to NCCL, to compare the choice with
  kTrial,          // uses an arm
};

// What a version says about one key.
struct KeyPlan {
  TableKey key;
  CollectiveConfig choice;  // kLeaveNcclAlone: NCCL's own
  // At most kMaxArmsOfPlan. NCCL's own is among them where the choice is another.
  std::vector<CollectiveConfig> arms;
  // Steps from one in which the key uses an arm to the next such step; not 0.
  uint16_t spacing = 1;
  // The choice was judged under earlier versions, so its samples go on as they were, one in kSparsePeriod.
  bool steady = false;
  bool joins = false;  // the key uses the plan's common arms
};

// The plan of one version. A value; the bytes of it are in docs/formats/table_plan.md.
struct TablePlan {
  bool others_use_policy = true;  // keys that are not listed: true the policy's choice, false NCCL's
  // Calls of the communicator in one step, and the number of the call that began a step; arms are drawn from
  // that step on. 0 calls: no arms are used.
  uint32_t step_calls = 0;
  uint64_t step_origin = 0;
  std::vector<KeyPlan> keys;  // each key once
  // Configs that all keys that join use in the same steps, as far as their collective has them. At most
  // kMaxArmsOfPlan, and none is NCCL's own.
  std::vector<CollectiveConfig> common;
  uint16_t common_spacing = 1;  // steps from one with a common arm to the next such step; not 0
};

// True if a version with `in_use` arms, of which only `still` are worth using, should make room for others: a
// new version costs messages, so a quarter of the arms must have become useless.
constexpr bool NeedsOtherArms(size_t in_use, size_t still) {
  return still < in_use && 4 * (in_use - still) >= in_use;
}

// A call's place.
struct PlaceInVersion {
  uint32_t ordinal = 0;  // number of calls of its key before it under its version
  uint64_t call = 0;     // its number on the communicator, whatever the version
};

// One number for a key, below 2^19. Equal keys have equal codes on all ranks.
uint32_t KeyCode(const TableKey& key);

// What a call uses.
struct PlannedUse {
  CallUse use = CallUse::kChoice;
  int arm = -1;  // index in KeyPlan::arms; -1: none of them. NCCL's own as an arm is a default sample
  CollectiveConfig config;  // of a trial

  friend bool operator==(const PlannedUse&, const PlannedUse&) = default;
};

// What the call at `place` uses. `default_samples`: the choice is not NCCL's own, so samples of NCCL's are
// taken where the key has no arms.
PlannedUse UseOf(const TablePlan& plan, const KeyPlan& key, bool default_samples,
                 const PlaceInVersion& place);
// A pseudo-random place below `period` for number `block` of the periods of the key with this code. A fixed
// place would always meet the same calls of a training step, because programs repeat their calls.
uint32_t PlaceIn(uint32_t period, uint32_t code, uint32_t block);
// True if the ranks time the key's call at `place`.
bool IsTimed(const TablePlan& plan, const KeyPlan& key, bool default_samples, const PlaceInVersion& place);

// A table plan as bytes, as it travels with a table version. Grammar: docs/formats/table_plan.md. The message
// that carries it is authenticated. A reader refuses a plan that it does not understand completely; then no
// rank uses the version.

// Returns the plan, shortened where it must be to fit into one message of 7,936 bytes. 218 keys fit with all
// nine arms. Of a longer plan the last keys lose their arms first. More than 874 keys do not fit even
// without arms: then keys that are not listed are left to NCCL, and so are the last keys.
TablePlan Fitting(TablePlan plan);
// Returns the bytes of a plan that fits.
std::vector<std::byte> EncodePlan(const TablePlan& plan);
// Reads the bytes of EncodePlan. Returns nothing if they are cut short, damaged, of another version, or name
// something that NCCL does not have.
std::optional<TablePlan> DecodePlan(std::span<const std::byte> bytes);

}  // namespace dynamiccl
