// SPDX-License-Identifier: Apache-2.0
// A short form of the search that jobs make for each key. Candidates are tried in turn with the configuration
// in use, and tests after every pair of calls adopt or drop them. Jobs run src/decision/guard.
#pragma once

#include <vector>

#include "src/policy/policy.h"
#include "studies/agents/baselines/called_key.h"

namespace dynamiccl::agents {

// A configuration that is in use from a call of the key on. Calls count from 1.
struct ChoiceFrom {
  int call = 1;
  CollectiveConfig config;
};

// Uses up the calls of `called` and returns the configurations that were in use, without the trials. Every
// second call is a trial, as long as a trial may pay off. The first trials are the candidates of jobs and the
// cost model's best. Later trials come four at a time, from the configurations that look promising after the
// measurements so far (FurtherCandidates).
//
// A trial is left out if it would make the last 20 calls take over a tenth longer than with NCCL's choice. If
// `policy` is null, only the cost model is used. Configurations that were not measured are not tried. If
// `first` is such a configuration, it counts as the default.
std::vector<ChoiceFrom> SearchKey(const Policy* policy, CalledKey& called, const CollectiveConfig& first);

}  // namespace dynamiccl::agents
