// SPDX-License-Identifier: Apache-2.0
// Choosers of configurations by a policy, which must outlive them.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The policy as it decides in jobs.
Chooser PolicyChooser(const Policy& policy);
// The policy's own choosers: as it is, without gate, networks only, trees only.
std::vector<Chooser> PolicyChoosers(const Policy& policy);

}  // namespace dynamiccl::agents
