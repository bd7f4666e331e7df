// SPDX-License-Identifier: Apache-2.0
// Decides with which config a call runs on a simulated system: one forced by a rule, one chosen by a policy,
// or the one that NCCL would pick there. The cost of the config is a separate question, which the system's
// measured times answer.
#pragma once

#include <functional>
#include <memory>

#include "src/decision/override_rules.h"
#include "src/policy/policy.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// One call; all fields are equal on all ranks of its communicator. `bytes` is NCCL's total.
struct CallOnSystem {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  int n_ranks = 1;
  int n_nodes = 1;
  // The role, as the trace labels the call. Rules may name roles.
  Role role = Role::kUnknown;
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;

  friend auto operator<=>(const CallOnSystem&, const CallOnSystem&) = default;
};

// Answers with a config. kLeaveNcclAlone, or an open part of a config, means the cheapest path.
using ConfigOnSystem = std::function<CollectiveConfig(const CallOnSystem&)>;

// The rules and the policy that may decide; either may be null.
struct Choosers {
  std::shared_ptr<const OverrideRules> rules;
  std::shared_ptr<const Policy> policy;
};

// Decides in the order of a running job: by the first matching rule, else by the policy if it expects to be
// faster, else as NCCL would (library_pick.h). A config for which the system has no path is not chosen. Each
// call is decided as if it were alone in its group. `system` must outlive the answer.
ConfigOnSystem DecidedOn(const System& system, Choosers choosers);

// Returns a function that chooses the cheapest path by the system's own times; no other choice is faster on
// this system. `system` must outlive the function.
ConfigOnSystem CheapestOn(const System& system);

}  // namespace dynamiccl
