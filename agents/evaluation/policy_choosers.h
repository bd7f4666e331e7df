// SPDX-License-Identifier: Apache-2.0
// Makes choosers of configurations from a policy. The policy must outlive its choosers.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// Chooses as the policy does in jobs.
Chooser PolicyChooser(const Policy& policy);
// Choosers for the policy as it is, and for variants without its gate or with only some of its parts.
std::vector<Chooser> PolicyChoosers(const Policy& policy);

}  // namespace dynamiccl::agents
