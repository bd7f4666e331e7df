// SPDX-License-Identifier: Apache-2.0
// Learners that see the sweep of the policy's training and nothing of NCCL's cost model, or that learn
// something else than times.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"

namespace dynamiccl::agents {

// The policy's networks without the prior: log2 of the time itself, no inputs from the cost model, no gate.
Chooser NoPriorChooser(const std::vector<SweptKey>& seen, uint64_t seed);

// DQN's target on logged data (fitted Q iteration): what a config costs now plus 0.95 times the least
// predicted cost of the next call, which is a random one, since no choice changes what the program calls
// next.
Chooser FittedQChooser(const std::vector<SweptKey>& seen, uint64_t seed);

}  // namespace dynamiccl::agents
