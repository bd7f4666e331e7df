// SPDX-License-Identifier: Apache-2.0
// Decides which config a call uses on a simulated system: one forced by a rule, one chosen by a policy, or
// the one that NCCL would choose there. How long the call then takes follows from the system's measured
// times.
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

// Returns the config for a call. kLeaveNcclAlone means that the simulator uses the fastest config of the
// system. If only a part of the config is left open, the simulator uses the fastest value for that part.
using ConfigOnSystem = std::function<CollectiveConfig(const CallOnSystem&)>;

// The rules and the policy that may choose configs. Each may be null.
struct Choosers {
  std::shared_ptr<const OverrideRules> rules;
  std::shared_ptr<const Policy> policy;
};

// Chooses in the order of a running job: the first matching rule, else the policy if it expects to be faster,
// else what NCCL would choose (library_pick.h). A config for which the system has no times is not chosen.
// Each call is decided as if it were alone in its group. `system` must outlive the returned function.
ConfigOnSystem DecidedOn(const System& system, Choosers choosers);

// Returns a function that chooses the algorithm and protocol with the shortest time on this system. `system`
// must outlive the function.
ConfigOnSystem CheapestOn(const System& system);

}  // namespace dynamiccl
