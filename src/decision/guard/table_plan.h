// SPDX-License-Identifier: Apache-2.0
// A table plan is what a table version adds to its policy: keys with another choice, configs that are tried
// on them ("arms"), and the training steps that use the arms. It is part of the version, so exploring needs
// no further agreement between ranks. What a call uses is a pure function of the plan, the key, the number of
// the call on its communicator and its ordinal, which is the number of earlier calls of the key under this
// version. All ranks count calls and ordinals alike, so all ranks use the same config.
//
// Example: the steps of one key with its own choice (C), three arms (1 2 3) and a spacing of 4. All of the
// key's calls in one step use the same config, and other keys draw independently:
//     C C 1 C C C 2 C C C 3 C | C 3 C C C 1 C C C 2 C C | ...
// While a plan has common arms, keys have no arms of their own, and all joining keys use the same arm in the
// same steps. A key without arms uses its choice, except that single calls are samples and left to NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/collective/collective_config.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// Up to this ordinal, all calls of a key with a choice other than NCCL's are timed, and one in kDensePeriod
// is left to NCCL. So half of the calls use the unproven choice, and a choice that is several times slower
// shows within a dozen calls.
inline constexpr uint32_t kDenseCalls = 48;
inline constexpr uint32_t kDensePeriod = 2;
// Among the first kCalmCalls calls of a key whose choice is NCCL's and that has no arms, one in kCalmPeriod
// is timed. The timing detector learns from the resulting 24 measured times (TimeReference::kLearnt). No
// choice is at risk, so no further times are needed.
inline constexpr uint32_t kCalmCalls = 96;
inline constexpr uint32_t kCalmPeriod = 4;
// After the dense calls, up to this ordinal, one call in kMiddlePeriod is left to NCCL and is timed together
// with a neighbouring call. The test can then see a choice that is 1.2x slower.
inline constexpr uint32_t kMiddleCalls = 192;
inline constexpr uint32_t kMiddlePeriod = 12;
// After kMiddleCalls, one call in 200 is a sample of NCCL's choice and is timed together with a neighbouring
// call, so 1 % of the calls are timed.
inline constexpr uint32_t kSparsePeriod = 200;
// For keys with arms, all calls of one step in 12 are timed, whatever config they use. So a step in which
// calls are timed is not one in which a certain arm is used, and the cost of timing is not taken for an
// effect of a config.
inline constexpr uint32_t kTimedStepPeriod = 12;
// The most arms of a key: eight that a search tries, and NCCL's own choice if the key has another choice.
inline constexpr size_t kMaxArmsOfPlan = 9;

// The purpose of a call.
enum class CallUse : uint8_t {
  kChoice,         // uses what the version chose for the key
  kDefaultSample,  // left to NCCL, to compare the choice with
  kTrial,          // uses an arm
};

// The part of a version about one key.
struct KeyPlan {
  TableKey key;
  CollectiveConfig choice;  // kLeaveNcclAlone: NCCL's own
  // At most kMaxArmsOfPlan. NCCL's own choice may be an arm if the key has another choice.
  std::vector<CollectiveConfig> arms;
  // Number of steps from one use of an arm by the key to the next; not 0.
  uint16_t spacing = 1;
  // True if earlier versions have judged the choice. Then one call in kSparsePeriod is a sample from the
  // first call on.
  bool steady = false;
  bool joins = false;  // the key uses the plan's common arms
};

// The plan of one version. A plain value; docs/formats/table_plan.md has its bytes.
struct TablePlan {
  bool others_use_policy = true;  // keys that are not listed: true the policy's choice, false NCCL's
  // Number of the communicator's calls in one step, and the number of a call that begins a step. From that
  // call on, steps use arms, and the leader's rank stamps them. 0 calls: no arms and no stamps.
  uint32_t step_calls = 0;
  uint64_t step_origin = 0;
  std::vector<KeyPlan> keys;  // each key once
  // Configs that all keys with `joins` use in the same steps, if NCCL has the config for their collective. At
  // most kMaxArmsOfPlan; never NCCL's own choice.
  std::vector<CollectiveConfig> common;
  uint16_t common_spacing = 1;  // number of steps from one use of a common arm to the next; not 0
  // Above 0: the first common arm leads, because it looks good. All steps use it, with two exceptions:
  // one in every common_pause steps uses no arm, and one in every common_spacing steps uses the next of the
  // other common arms.
  uint16_t common_pause = 0;
};

// True if a new version should replace arms. `in_use` is the number of arms of the present version, and
// `still` is how many of them are worth using. A new version costs messages, so at least a quarter of the
// arms must have become useless.
constexpr bool NeedsOtherArms(size_t in_use, size_t still) {
  return still < in_use && 4 * (in_use - still) >= in_use;
}

// The place of a call among the calls of its communicator and of its key.
struct PlaceInVersion {
  uint32_t ordinal = 0;  // number of calls of its key before it under its version
  uint64_t call = 0;     // number of the call on the communicator, across versions
};

// Returns a number below 2^19 for the key. Equal keys have equal codes on all ranks.
uint32_t KeyCode(const TableKey& key);

// The config that a call uses.
struct PlannedUse {
  CallUse use = CallUse::kChoice;
  int arm = -1;  // index in KeyPlan::arms; -1: none of them. NCCL's choice as an arm counts as a sample
  CollectiveConfig config;  // config of a trial

  friend bool operator==(const PlannedUse&, const PlannedUse&) = default;
};

// Returns what the call at `place` uses. `default_samples`: the choice is not NCCL's own, so a key without
// arms takes samples of NCCL's choice.
PlannedUse UseOf(const TablePlan& plan, const KeyPlan& key, bool default_samples,
                 const PlaceInVersion& place);
// Returns a pseudo-random place below `period` in block number `block`, for the key with this code. Blocks
// have `period` calls or steps each. A fixed place would always meet the same calls of a training step,
// because programs repeat their calls.
uint32_t PlaceIn(uint32_t period, uint32_t code, uint32_t block);
// True if any call may use an arm.
bool HasArms(const TablePlan& plan);
// True if the call is the first of a step in which arms may be used. The leader's rank stamps such calls with
// its device's clock. A host that runs ahead of its device issues calls long before they run, so the host's
// clock does not tell when a step began.
bool BeginsStep(const TablePlan& plan, uint64_t call);
// True if the ranks time the key's call at `place`.
bool IsTimed(const TablePlan& plan, const KeyPlan& key, bool default_samples, const PlaceInVersion& place);

// The bytes of a table plan, as they travel with a table version. Grammar: docs/formats/table_plan.md. The
// message that carries them is authenticated. A rank refuses a plan that it does not understand completely;
// then no rank uses the version.

// Returns the plan, shortened if it does not fit into one message of 7,936 bytes. 218 keys fit with all nine
// arms. In a longer plan the last keys lose their arms first. More than 874 keys do not fit even without
// arms: then entries at NCCL's choice are removed, the last keys are dropped, and unlisted keys are left to
// NCCL.
TablePlan Fitting(TablePlan plan);
// Returns the bytes of a plan that fits.
std::vector<std::byte> EncodePlan(const TablePlan& plan);
// Reads the bytes of EncodePlan. Returns nothing if they are cut short, damaged, of another version, or name
// something that NCCL does not have.
std::optional<TablePlan> DecodePlan(std::span<const std::byte> bytes);

}  // namespace dynamiccl
