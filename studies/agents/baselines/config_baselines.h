// SPDX-License-Identifier: Apache-2.0
// Choosers of configurations that do not try anything on the job: the rules that a policy must beat. All of
// them see the same sweep. `seen`, the keys of training, must outlive the choosers made from them.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"

namespace dynamiccl::agents {

// The library's default, the rules below and the oracle.
std::vector<Chooser> RuleChoosers(const std::vector<SweptKey>& seen);

// A table look-up. It gives the best configuration of the seen key of the same collective that is nearest in
// octaves of bytes, ranks and nodes.
Chooser NearestKeyChooser(const std::vector<SweptKey>& seen);
// One configuration for each collective. It has the least mean log time, relative to the default, over the
// seen keys.
Chooser BestStaticChooser(const std::vector<SweptKey>& seen);
// Rules in the form that NVIDIA's example tuner reads. For each collective, number of nodes and number of
// ranks there are ranges of bytes, with one configuration for each range. This configuration has the least
// mean log time, relative to the default, over the topologies with these numbers of nodes and ranks. Ranges
// end half-way, in octaves, between measured sizes.
Chooser CsvRulesChooser(const std::vector<SweptKey>& seen);
// NCCL's cost model with one factor for each algorithm and protocol. The factor is the mean over the
// topology's seen keys, or over all seen keys if the topology was not seen.
Chooser CalibratedDefaultChooser(const std::vector<SweptKey>& seen);

}  // namespace dynamiccl::agents
