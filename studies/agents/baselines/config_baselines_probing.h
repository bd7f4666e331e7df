// SPDX-License-Identifier: Apache-2.0
// Choosers that try configurations on the job itself. Every key is called kProbingCalls times, so all
// choosers get the same number of calls. A call of a configuration takes the time of one of its measured
// repeats in the picking half, drawn at random. The configuration in use at the end is judged by the other
// half.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"
#include "studies/agents/baselines/key_search.h"

namespace dynamiccl::agents {

// The choosers that try configurations, for one seed:
//
//   default, called     tries nothing and shows what the repeats do by themselves
//   policy, probes      starts with the policy's choice and searches from it (key_search.h)
//   cost model, probes  the same with the cost model only
//   coordinate descent  algorithm and protocol, then channels, three calls each, until nothing improves
//   bandit, 5 % gate    every configuration in turn for half of the calls; the best trimmed mean is adopted
//                       if it is 5 % better
//   LinUCB              one linear model of the features for all keys of a topology, which decides every call
std::vector<Chooser> ProbingChoosers(const Policy& policy, const std::vector<SweptKey>& keys, uint64_t seed);

// Returns the configurations that "policy, probes" uses over the calls of `key`, if it begins with `first`.
// `key` must have a measured default. Trials are not included.
std::vector<ChoiceFrom> SearchedChoices(const Policy& policy, const SweptKey& key,
                                        const CollectiveConfig& first, uint64_t seed);

}  // namespace dynamiccl::agents
