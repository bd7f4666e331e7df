// SPDX-License-Identifier: Apache-2.0
// Choosers of configurations that do not try anything on the job: the policy, and the rules that it must
// beat. All of them see the same sweep. `policy` and `seen`, the keys of training, must outlive the choosers
// made from them.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// The policy as it decides in jobs.
Chooser PolicyChooser(const Policy& policy);
// The policy's own choosers: as it is, without gate, networks only, trees only.
std::vector<Chooser> PolicyChoosers(const Policy& policy);
// The library's default, the rules below, and the oracle.
std::vector<Chooser> RuleChoosers(const std::vector<SweptKey>& seen);

// A table look-up: the best configuration of the seen key of the same collective that is nearest in octaves
// of bytes, ranks and nodes.
Chooser NearestKeyChooser(const std::vector<SweptKey>& seen);
// One configuration for each collective: the one with the least mean log time, relative to the default, over
// the seen keys.
Chooser BestStaticChooser(const std::vector<SweptKey>& seen);
// Rules in the form that NVIDIA's example tuner reads: for each collective, number of nodes and number of
// ranks, ranges of bytes with one configuration each. It is the one with the least mean log time, relative to
// the default, over the topologies of that shape. Ranges end half-way, in octaves, between measured sizes.
Chooser CsvRulesChooser(const std::vector<SweptKey>& seen);
// NCCL's cost model with one factor for each algorithm and protocol: the mean over the topology's seen keys,
// or over all seen keys if the topology was not seen.
Chooser CalibratedDefaultChooser(const std::vector<SweptKey>& seen);

}  // namespace dynamiccl::agents
