// SPDX-License-Identifier: Apache-2.0
// What is worth trying on a key: the prior's best five (NCCL's cost model, corrected by the policy where it
// was trained), the best of the cost model alone, which knows what the policy was misled about, and the next
// channel counts on either side of the prior's best. NCCL's own choice is none of them.
#pragma once

#include <vector>

#include "src/collective/collective_config.h"
#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

inline constexpr size_t kBestOfPrior = 5;
inline constexpr size_t kBestOfModel = 3;

struct ProbeCandidate {
  CollectiveConfig config;
  double predicted = 1;  // time over that of NCCL's choice
};

// Best first. `policy` may be null: the cost model alone.
std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question);

}  // namespace dynamiccl
