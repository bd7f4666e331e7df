// SPDX-License-Identifier: Apache-2.0
// Who chooses configs: the policy, and the simple rules that it must beat. All of them see the same sweep.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The library's default, the policy, the policy without its gate, the nearest measured key's best config, the
// best static config of each collective, and the oracle. `policy` and `seen` (the keys of training) must
// outlive them.
std::vector<Chooser> AllChoosers(const Policy& policy, const std::vector<SweptKey>& seen);

Chooser PolicyChooser(const Policy& policy);
// The best config of the seen key of the same collective that is nearest in octaves of bytes, ranks and
// nodes.
Chooser NearestKeyChooser(const std::vector<SweptKey>& seen);
// One config a collective: the one with the least mean log time against the default over the seen keys.
Chooser BestStaticChooser(const std::vector<SweptKey>& seen);

}  // namespace dynamiccl::agents
