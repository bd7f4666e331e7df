// SPDX-License-Identifier: Apache-2.0
// The search of one key as jobs make it, in short: candidates are tried beside the config in use, taken over
// or dropped by tests after every pair (src/decision/guard is what jobs run).
#pragma once

#include <vector>

#include "agents/evaluation/called_key.h"
#include "src/policy/policy.h"

namespace dynamiccl::agents {

// In use from a call of the key on; calls count from 1.
struct ChoiceFrom {
  int call = 1;
  CollectiveConfig config;
};

// Uses up the calls of `called` and says what was in use; trials between are not choices. Every second call
// tries something, until nothing is left that may be worth it: the candidates of jobs and the cost model's
// own best first, then, four at a time, what is believed after what was seen (FurtherCandidates). No trial
// where those of the last 20 calls would then take more than a tenth over NCCL's choice. `policy` may be
// null: the cost model alone. What was not measured is not tried; as `first` it counts as the default.
std::vector<ChoiceFrom> SearchKey(const Policy* policy, CalledKey& called, const CollectiveConfig& first);

}  // namespace dynamiccl::agents
