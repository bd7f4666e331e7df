// SPDX-License-Identifier: Apache-2.0
// Who chooses configs without asking the job: the policy, and the rules that it must beat. All of them see
// the same sweep.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The library's default, the policy with and without its gate, its networks alone and its trees alone, the
// rules below, and the oracle. `policy` and `seen` (the keys of training) must outlive them.
std::vector<Chooser> AllChoosers(const Policy& policy, const std::vector<SweptKey>& seen);

Chooser PolicyChooser(const Policy& policy);
// The policy's own choosers: as it is, without gate, networks alone, trees alone.
std::vector<Chooser> PolicyChoosers(const Policy& policy);
// The rest of AllChoosers, which depends on no policy.
std::vector<Chooser> RuleChoosers(const std::vector<SweptKey>& seen);

// The best config of the seen key of the same collective that is nearest in octaves of bytes, ranks and
// nodes.
Chooser NearestKeyChooser(const std::vector<SweptKey>& seen);
// One config a collective: the one with the least mean log time against the default over the seen keys.
Chooser BestStaticChooser(const std::vector<SweptKey>& seen);
// Rules as NVIDIA's example tuner reads them: for each collective, number of nodes and ranks, ranges of bytes
// with one config each, the one with the least mean log time against the default over the topologies of that
// shape. Ranges end half-way, in octaves, between measured sizes.
Chooser CsvRulesChooser(const std::vector<SweptKey>& seen);
// NCCL's cost model with one factor for each algorithm and protocol, the mean over the topology's seen keys;
// over all seen keys where the topology was not seen.
Chooser CalibratedDefaultChooser(const std::vector<SweptKey>& seen);

}  // namespace dynamiccl::agents
