// SPDX-License-Identifier: Apache-2.0
// The best config of each (collective, size class) of a trace, found by replaying it under each of them.
#pragma once

#include <string>
#include <vector>

#include "tools/replay/replay_comparison.h"

namespace dynamiccl {

// What is forced in turn: every (algorithm, protocol) that NCCL has for a collective of the plan, with NCCL's
// channels. CollNet is left out: it needs switches that sum.
std::vector<CollectiveConfig> ConfigsToForce(const ReplayPlan& plan);

// The config as rules (docs/formats/override_rules.md) for every size of every collective that has it.
std::string RulesThatForce(const CollectiveConfig& config);

// Rules for the best. `comparison`'s arms are the default, then `forced`. A config must be 3 % faster than
// the default, or NCCL is left alone: the fastest of many noisy times is always faster than the first.
std::string RulesOfFastest(const ReplayComparison& comparison, const std::vector<CollectiveConfig>& forced);

}  // namespace dynamiccl
