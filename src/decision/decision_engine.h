// SPDX-License-Identifier: Apache-2.0
// What to do with one question of NCCL's tuner interface: override rules first, then the policy's table, else
// nothing.
#pragma once

#include <memory>

#include "src/collective/decided_by.h"
#include "src/collective/decision_key.h"
#include "src/cost_model/cost_model.h"
#include "src/decision/decision_table.h"
#include "src/decision/guard/planned_table.h"
#include "src/decision/override_rules.h"

namespace dynamiccl {

// All fields are equal on all ranks.
struct TunerQuestion {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;  // NCCL's total of the batch
  int n_pipe_ops = 1;
  Role role = Role::kUnknown;  // recognised
  uint64_t call_number = 0;    // of the communicator
  bool is_call = true;         // false: a simulated group, which counts nothing
};

struct Decision {
  CollectiveConfig config;  // kLeaveNcclAlone: NCCL's own choice
  DecidedBy decided_by = DecidedBy::kNccl;
  CallUse use = CallUse::kChoice;  // what the plan of the table's version makes of the call
  CollectiveConfig asked_for;      // `config` before it was fitted to the communicator's channels
  CollectiveConfig policy_choice;  // what would be asked for without the plan
  uint64_t chunk_bytes = 0;        // for `config`'s algorithm and protocol; 0: NCCL's
};

// Cells that may be chosen: possible for NCCL and not priced out. NCCL prices what must not be used without
// an opt-in at hundreds of times the best (fp8 rings x1024, multi-rank PAT at FLT_MAX / 2); 500 keeps clear
// of both.
inline constexpr float kPricedOut = 500.0f;
ConfigMask ChoosableCells(const CostTable& table);

struct EngineOptions {
  int n_nodes = 1;
  int n_ranks = 1;
  int max_channels = 0;                        // of the communicator; 0: unknown
  bool channels_are_pinned = false;            // the user fixed their number: it stays NCCL's
  std::shared_ptr<const OverrideRules> rules;  // may be null
  EntryFunction policy;                        // may be empty: rules only
  // Of the table's version, for one engine; null: the policy alone. With one, calls are asked about by the
  // thread that issues them.
  std::shared_ptr<PlannedTable> plan;
};

// Of one communicator. Any thread.
class DecisionEngine {
 public:
  explicit DecisionEngine(EngineOptions options);

  // Null: the policy alone.
  const PlannedTable* plan() const { return options_.plan.get(); }
  // `allowed` is what NCCL offers on every rank (mask_agreement.h); the answer is one of it, or nothing.
  Decision Decide(const TunerQuestion& question, const ConfigMask& allowed);

 private:
  // All but `config`.
  Decision Propose(const TunerQuestion& question, const ConfigMask& allowed);
  Decision Planned(const TableKey& key, const CollectiveConfig& policy_choice,
                   const TunerQuestion& question) const;
  CollectiveConfig WithLegalChannels(CollectiveConfig config) const;

  const EngineOptions options_;
  std::unique_ptr<DecisionTable> table_;  // null without a policy
};

}  // namespace dynamiccl
