// SPDX-License-Identifier: Apache-2.0
// What is worth trying on a key: the prior's best five (NCCL's cost model, corrected by the policy's ensemble
// where it was trained), and the next channel counts on either side of the best. NCCL's own choice is none of
// them.
#pragma once

#include <vector>

#include "src/collective/collective_config.h"
#include "src/policy/config_features.h"
#include "src/policy/policy.h"

namespace dynamiccl {

inline constexpr size_t kBestOfPrior = 5;

struct ProbeCandidate {
  CollectiveConfig config;
  double predicted = 1;  // time over that of NCCL's choice
};

// Best first. `policy` may be null: the cost model alone.
std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question);

}  // namespace dynamiccl
