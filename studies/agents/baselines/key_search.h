// SPDX-License-Identifier: Apache-2.0
// The search at one key as jobs make it, in short form. Candidates are tried in turn with the configuration
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

// Uses up the calls of `called` and returns what was in use. Trials are not choices. Every second call is a
// trial, as long as a trial may pay off. The first trials are the candidates of jobs and the cost model's
// best. The later ones come four at a time, from what looks promising after the measurements so far
// (FurtherCandidates).
//
// A trial is left out if the trials of the last 20 calls would then cost more than a tenth over NCCL's
// choice. If `policy` is null, only the cost model is used. Configurations that were not measured are not
// tried. As `first`, such a configuration counts as the default.
std::vector<ChoiceFrom> SearchKey(const Policy* policy, CalledKey& called, const CollectiveConfig& first);

}  // namespace dynamiccl::agents
