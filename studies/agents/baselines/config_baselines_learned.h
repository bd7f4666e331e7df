// SPDX-License-Identifier: Apache-2.0
// Learners that see the sweep of the policy's training, but either do not see NCCL's cost model or learn
// something other than times.
#pragma once

#include <vector>

#include "agents/evaluation/regret.h"

namespace dynamiccl::agents {

// The policy's networks without the prior: they predict log2 of the time itself, without inputs from the cost
// model and without a gate.
Chooser NoPriorChooser(const std::vector<SweptKey>& seen, uint64_t seed);

// Fitted Q iteration, the target of DQN on logged data: the cost of a configuration now plus 0.95 times the
// least predicted cost of the next call. The next call is a random one, since no choice changes what the
// program calls next.
Chooser FittedQChooser(const std::vector<SweptKey>& seen, uint64_t seed);

}  // namespace dynamiccl::agents
