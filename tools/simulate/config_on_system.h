// SPDX-License-Identifier: Apache-2.0
// Which config a call runs with on a simulated system: forced by a rule, chosen by a policy, or what NCCL
// would pick there. What it then costs is another question, which the system's measured times answer.
#pragma once

#include <functional>
#include <memory>

#include "src/decision/override_rules.h"
#include "src/policy/policy.h"
#include "src/simulator/system.h"

namespace dynamiccl {

// One call, all of it equal on all ranks of its communicator. `bytes` is NCCL's total.
struct CallOnSystem {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  int n_ranks = 1;
  int n_nodes = 1;

  friend auto operator<=>(const CallOnSystem&, const CallOnSystem&) = default;
};

// Leaves NCCL alone, or a part open, where the cheapest path is to be taken.
using ConfigOnSystem = std::function<CollectiveConfig(const CallOnSystem&)>;

// Either may be null.
struct Choosers {
  std::shared_ptr<const OverrideRules> rules;
  std::shared_ptr<const Policy> policy;
};

// In the order of a job: the first rule that matches, else what the policy promises to be faster, else NCCL's
// own pick (library_pick.h). What the system knows no path for is not chosen. Calls are asked about as those
// of an unknown role, alone in their group. `system` must outlive the answer.
ConfigOnSystem DecidedOn(const System& system, Choosers choosers);

// The cheapest path that the system knows, as its own times say: what no choice can beat there.
ConfigOnSystem CheapestOn(const System& system);

}  // namespace dynamiccl
