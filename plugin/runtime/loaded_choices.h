// SPDX-License-Identifier: Apache-2.0
// Holds what decides calls in this process: the policy, the rules, and the decisions of an earlier run, as
// their files were at the start of the process. The values are read once and never change, so any thread may
// use them without a lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/runtime/computed_entries.h"
#include "plugin/runtime/job_settings.h"
#include "src/cost_model/cost_model.h"
#include "src/decision/attestation.h"
#include "src/decision/decision_table.h"
#include "src/decision/override_rules.h"
#include "src/decision/saved_decisions.h"
#include "src/nccl_abi/tuner_v5.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Returns the cost model's input for a communicator; `constants` is null if NCCL does not provide them.
CostModelInput InputOf(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes);

// Owned by the process's runtime. If a named file cannot be used, the process takes no part in choosing
// (WhyNotChoosing). The reason is logged when the file is loaded.
class LoadedChoices {
 public:
  // Reads the files that `settings` names, in modes that choose. `computed` receives every entry that is
  // computed from the policy. Both outlive this object.
  LoadedChoices(const JobSettings& settings, ComputedEntries& computed);

  // Null without rules.
  const std::shared_ptr<const OverrideRules>& rules() const { return rules_; }
  // The rules that take turns (src/decision/rule_turns.h), in place of rules(); empty: none.
  const std::vector<std::shared_ptr<const OverrideRules>>& rules_in_turn() const { return rules_in_turn_; }
  // Returns true if some rule sets a chunk size.
  bool SetsChunks() const;
  // Returns true if some rule names a role, phase or stage.
  bool RulesNeedRecognition() const;
  // Returns true if some rule names a level of memory pressure, and this process takes part in agreeing on a
  // level.
  bool RulesNeedMemory() const;
  // Returns true if rules set bounds on channels. The ranks agree on such bounds before NCCL's init. False if
  // this process takes no part in choosing.
  bool SetsChannelBounds() const {
    return rules_ && rules_->any_about_communicators() && WhyNotChoosing().empty();
  }
  // Null without a policy.
  const std::shared_ptr<const Policy>& policy() const { return policy_; }
  // SHA-256 of the policy file in hexadecimal; empty without one.
  const std::string& policy_hash() const { return policy_hash_; }
  // The first half of the hash; zeros without a policy.
  const std::array<uint8_t, 16>& policy_digest() const { return policy_digest_; }
  // Returns true if the choices are those of an earlier run, in place of the policy's.
  bool UsesSavedDecisions() const { return decisions_ != nullptr; }
  // SHA-256 of the rules file in hexadecimal; empty without one.
  std::string rules_hash() const { return rules_ ? ToHex(rules_->digest()) : std::string(); }
  // Returns true if choices come from anything besides a policy and rules. A user can vouch only for a policy
  // and rules, by their hashes.
  bool UsesOtherSources() const { return !rules_in_turn_.empty() || decisions_ != nullptr; }
  // Returns why this process takes no part in choosing: its mode, a refused file, or NCCL_TUNER_PLUGIN=none.
  // Empty if it does take part.
  std::string WhyNotChoosing() const;

  // Returns the function that computes the entries of a communicator's table. The entries are those of the
  // earlier run; without an earlier run, the policy's; without a policy and in mode adaptive, NCCL's choices,
  // which later table versions may change. The function depends only on attested values. It is empty if none
  // of these cases applies. `constants` as in InputOf.
  EntryFunction EntriesFor(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes) const;
  // Like EntriesFor, but for a given policy, such as one that arrived while the job ran. With a null policy
  // every key gets NCCL's own choice.
  EntryFunction PolicyEntries(std::shared_ptr<const Policy> policy, const CostModelInput& input) const;

  // Returns what this process attests about itself. Values that belong to a communicator are left out
  // (communicator_attestation.h).
  AttestedValues Attested() const;

 private:
  // Warns if some rules cannot match any call in this job.
  void WarnOfUselessRules() const;
  // Returns true if `asks` is true for any of the rules.
  bool AnyOfRules(bool (OverrideRules::*asks)() const) const;
  void LoadRules();
  void LoadRulesInTurn();
  void LoadPolicy();
  void LoadDecisions();

  const JobSettings& settings_;
  ComputedEntries& computed_;
  std::shared_ptr<const OverrideRules> rules_;
  std::vector<std::shared_ptr<const OverrideRules>> rules_in_turn_;
  std::string rules_state_ = "none";  // what is attested about the rules
  std::shared_ptr<const Policy> policy_;
  std::string policy_hash_;
  std::array<uint8_t, 16> policy_digest_{};
  std::string golden_ = "none";  // digest of what this machine computes for the policy's golden vectors
  std::shared_ptr<const SavedDecisions> decisions_;
  std::string refused_;  // what is wrong with one of the files; empty if nothing is
};

}  // namespace dynamiccl
