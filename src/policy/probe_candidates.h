// SPDX-License-Identifier: Apache-2.0
// What is worth trying on a key: the prior's best five (NCCL's cost model, corrected by the policy where it
// was trained), the next channel counts on either side of the best, and, where there are calls enough to try
// more, the best of the cost model alone, which knows what the policy was misled about. NCCL's own choice is
// none of them.
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

// Best first. `policy` may be null: the cost model alone. `best_of_model`: how many of the cost model's own
// best there are among them; 0 in jobs, whose guard did not come to an end of its search with three more.
std::vector<ProbeCandidate> ProbeCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question, size_t best_of_model = 0);

// What a config was seen to take, over what NCCL's choice takes.
struct TriedConfig {
  CollectiveConfig config;
  double ratio = 1;
};

// What to try next, best first and at most `most`, where all of `tried` had their turns: what was seen of a
// config is believed of its kin too, most of all of the same algorithm and protocol with a similar number of
// channels. Only what is then believed to take at most twice what is in use, for beliefs are off by as
// much; what is in use takes `in_use` times as long as NCCL's choice. Neither NCCL's choice nor what was
// tried is among them. For the evaluation's search; jobs end theirs with the candidates above.
std::vector<ProbeCandidate> FurtherCandidates(const Policy* policy, const CostModelInput& input,
                                              const ConfigQuestion& question,
                                              const std::vector<TriedConfig>& tried, double in_use,
                                              size_t most);

}  // namespace dynamiccl
