// SPDX-License-Identifier: Apache-2.0
// Decides one question of NCCL's tuner interface. Override rules are asked first, then the plan of the table
// version, then the policy; the first that has an answer wins. NCCL's own choice stays if there is no answer,
// or if NCCL does not offer the answer on every rank.
#pragma once

#include <memory>

#include "src/collective/decided_by.h"
#include "src/collective/decision_key.h"
#include "src/cost_model/cost_model.h"
#include "src/decision/decision_table.h"
#include "src/decision/guard/planned_table.h"
#include "src/decision/override_rules.h"
#include "src/decision/rule_turns.h"

namespace dynamiccl {

// The answer to one question, with its purpose and who decided it.
struct Decision {
  CollectiveConfig config;  // the answer to NCCL; kLeaveNcclAlone: NCCL chooses
  DecidedBy decided_by = DecidedBy::kNccl;
  CallUse use = CallUse::kChoice;  // the purpose that the version's plan gives to the call
  CollectiveConfig asked_for;      // `config` before its channels were limited to the communicator's
  CollectiveConfig policy_choice;  // what would have been asked for without the plan
  uint64_t chunk_bytes = 0;        // chunk size for `config`; 0: NCCL's
  uint32_t turn = 0;               // number of the turn if rules take turns; 0: none
};

// A cell whose cost is this many times the least one, or more, may not be chosen. NCCL prices cells that must
// not be used without an opt-in at hundreds of times the least cost: fp8 rings at 1024 times, PAT with
// several ranks at FLT_MAX / 2. 500 is below both.
inline constexpr float kPricedOut = 500.0f;
// Returns the cells of NCCL's cost table that may be chosen. Left out are cells with a negative cost, which
// NCCL cannot use, and cells that cost kPricedOut times the least cost or more.
ConfigMask ChoosableCells(const CostTable& table);
// Returns the config that NCCL uses by itself: the algorithm and protocol with the least cost, and 0
// channels. Returns kLeaveNcclAlone if no cell is possible.
CollectiveConfig CheapestCell(const CostTable& table);

// Holds all inputs of an engine besides the key of the call. The ranks have attested that all of them are
// equal.
struct EngineOptions {
  int n_nodes = 1;
  int n_ranks = 1;
  int max_channels = 0;                        // channels of the communicator; 0: unknown
  bool channels_are_pinned = false;            // the user fixed the number of channels, so NCCL decides it
  std::shared_ptr<const OverrideRules> rules;  // may be null
  // Sets of rules that take turns, used in place of `rules` and by this engine alone; null: no turns. With
  // turns, only the thread that issues the communicator's calls may ask about calls.
  std::shared_ptr<RuleTurns> turns;
  EntryFunction policy;  // may be empty: rules only
  // The plan of the table version, used by this engine alone; null: the policy alone decides. With a plan,
  // only the thread that issues the communicator's calls may ask about calls.
  std::shared_ptr<PlannedTable> plan;
};

// The decisions of one table version on one communicator, shared by its SwitchableTables and the tuner
// session (plugin). Any thread may ask, but see EngineOptions::plan. Equal keys and masks in equal order give
// equal decisions on all ranks. It does not fail: without an answer the call is left to NCCL.
class DecisionEngine {
 public:
  explicit DecisionEngine(EngineOptions options);

  // Returns the version's plan; null: the policy alone decides.
  const PlannedTable* plan() const { return options_.plan.get(); }
  // `allowed` is what NCCL offers on every rank (mask_agreement.h). The answer is one of these configs or
  // kLeaveNcclAlone.
  Decision Decide(const DecisionKey& key, const ConfigMask& allowed);

 private:
  // Returns what rules, plan or policy ask for. Decide then checks that NCCL offers it, and sets
  // Decision::config.
  Decision Propose(const DecisionKey& key, const ConfigMask& allowed);
  // Returns the rules for the call. The engine must have rules or turns.
  const OverrideRules& RulesFor(const RuleSubject& subject, const DecisionKey& key);
  // Returns the decision by the version's plan, given the policy's choice.
  Decision Planned(const TableKey& entry, const CollectiveConfig& policy_choice,
                   const DecisionKey& key) const;
  // Returns the config with its channels limited to what the communicator can have.
  CollectiveConfig WithLegalChannels(CollectiveConfig config) const;

  const EngineOptions options_;
  std::unique_ptr<DecisionTable> table_;  // null without a policy
};

}  // namespace dynamiccl
