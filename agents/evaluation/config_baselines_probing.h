// SPDX-License-Identifier: Apache-2.0
// Who chooses by trying on the job itself: every key is called so many times, a call of a config takes one of
// its measured repeats of the picking half at random, and the config held at the end is valued by the other
// half. All of them get the same number of calls.
#pragma once

#include <vector>

#include "agents/evaluation/key_search.h"
#include "agents/evaluation/regret.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// What trying gave, for one seed:
//   default, called     nobody tries anything: what the repeats do by themselves
//   policy, probes      the policy's choice to begin with, then a search beside it (key_search.h)
//   cost model, probes  the same with the cost model alone
//   coordinate descent  algorithm and protocol, then channels, three calls each, until nothing improves
//   bandit, 5 % gate    every config in turn for half of the calls, trimmed means, adopted where 5 % better
//   LinUCB              one linear model of the features for all keys of a topology, every call its choice
std::vector<Chooser> ProbingChoosers(const Policy& policy, const std::vector<SweptKey>& keys, uint64_t seed);

// What "policy, probes" has in use over the calls of `key`, which has a measured default, when `first` is in
// use at first. Trials between are not choices.
std::vector<ChoiceFrom> SearchedChoices(const Policy& policy, const SweptKey& key,
                                        const CollectiveConfig& first, uint64_t seed);

}  // namespace dynamiccl::agents
