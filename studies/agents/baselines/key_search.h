// SPDX-License-Identifier: Apache-2.0
// The search at one key as jobs make it, in short form: candidates are tried beside the configuration in use,
// and adopted or dropped by tests after every pair of calls. Jobs run src/decision/guard.
#pragma once

#include <vector>

#include "src/policy/policy.h"
#include "studies/agents/baselines/called_key.h"

namespace dynamiccl::agents {

// A configuration in use from a call of the key on; calls count from 1.
struct ChoiceFrom {
  int call = 1;
  CollectiveConfig config;
};

// Uses up the calls of `called` and returns what was in use; trials are not choices. Every second call tries
// something, as long as something may be worth it: first the candidates of jobs and the cost model's best,
// then, four at a time, what is promising after what was seen (FurtherCandidates). Nothing is tried if the
// trials of the last 20 calls would then cost more than a tenth over NCCL's choice. `policy` may be null,
// which means the cost model only. Configurations that were not measured are not tried; as `first` such a one
// counts as the default.
std::vector<ChoiceFrom> SearchKey(const Policy* policy, CalledKey& called, const CollectiveConfig& first);

}  // namespace dynamiccl::agents
