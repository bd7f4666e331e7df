// SPDX-License-Identifier: Apache-2.0
// What decides calls in this process: the policy, the rules, and the decisions of an earlier run, as their
// files were when the process began. Values that are read once and never change, so that any thread may use
// them without a lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/runtime/job_settings.h"
#include "plugin/runtime/made_entries.h"
#include "src/cost_model/cost_model.h"
#include "src/decision/attestation.h"
#include "src/decision/decision_table.h"
#include "src/decision/override_rules.h"
#include "src/decision/saved_decisions.h"
#include "src/nccl_abi/tuner_v5.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// What the cost model knows of a communicator; `constants` is null where NCCL does not tell them.
CostModelInput InputOf(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes);

// Owned by the process's runtime. A file that is named and cannot be used makes the process take no part in
// choosing (WhyNotChoosing); the reason is logged when it is loaded, and attested to no other rank.
class LoadedChoices {
 public:
  // Reads the files that `settings` names, in modes that choose. `made` gets every entry that is made from
  // the policy; both outlive this object.
  LoadedChoices(const JobSettings& settings, MadeEntries& made);

  // Null without rules.
  const std::shared_ptr<const OverrideRules>& rules() const { return rules_; }
  // Rules that take turns (src/decision/rule_turns.h), in place of rules(); empty: none do.
  const std::vector<std::shared_ptr<const OverrideRules>>& rules_in_turn() const { return rules_in_turn_; }
  // Whether some rule sets a chunk size.
  bool SetsChunks() const;
  // Whether rules set bounds on channels, which ranks agree on before NCCL's init; false where this process
  // takes no part in choosing.
  bool SetsChannelBounds() const {
    return rules_ && rules_->any_about_communicators() && WhyNotChoosing().empty();
  }
  // Null without a policy.
  const std::shared_ptr<const Policy>& policy() const { return policy_; }
  // SHA-256 of the policy file in hexadecimal; empty without one.
  const std::string& policy_hash() const { return policy_hash_; }
  // Its first half; zeros without a policy.
  const std::array<uint8_t, 16>& policy_digest() const { return policy_digest_; }
  // Whether the choices are those of an earlier run, in place of the policy's.
  bool AreSaved() const { return decisions_ != nullptr; }
  // Whether choices come from more than the policy, which is all that a user can vouch for by its hash.
  bool ChoosesBesidePolicy() const {
    return rules_ != nullptr || !rules_in_turn_.empty() || decisions_ != nullptr;
  }
  // Why this process takes no part in choosing: its mode, a file that it refused, NCCL_TUNER_PLUGIN=none.
  // Empty when it does.
  std::string WhyNotChoosing() const;

  // The entries of a communicator's table, a pure function of what is attested: those of the earlier run,
  // else the policy's. Empty without either. `constants` as in InputOf.
  EntryFunction EntriesFor(const ncclTunerConstants_v5_t* constants, int n_ranks, int n_nodes) const;
  // The entries of any policy: of one that came while the job ran.
  EntryFunction EntriesOf(std::shared_ptr<const Policy> policy, const CostModelInput& input) const;

  // What this process attests of itself. What only a communicator has is left out
  // (communicator_attestation.h).
  AttestedValues Attested() const;

 private:
  void LoadRules();
  void LoadRulesInTurn();
  void LoadPolicy();
  void LoadDecisions();

  const JobSettings& settings_;
  MadeEntries& made_;
  std::shared_ptr<const OverrideRules> rules_;
  std::vector<std::shared_ptr<const OverrideRules>> rules_in_turn_;
  std::string rules_state_ = "none";  // what is attested of the rules
  std::shared_ptr<const Policy> policy_;
  std::string policy_hash_;
  std::array<uint8_t, 16> policy_digest_{};
  std::string golden_ = "none";  // digest of what this machine computes for the policy's golden vectors
  std::shared_ptr<const SavedDecisions> decisions_;
  std::string refused_;  // what is wrong with one of the files; empty: nothing
};

}  // namespace dynamiccl
