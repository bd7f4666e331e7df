// SPDX-License-Identifier: Apache-2.0
// Candidates of the search in key_search.h. Jobs use UnlikeFirst (src/policy/probe_candidates.h) instead.
#pragma once

#include <cstddef>
#include <vector>

#include "src/policy/probe_candidates.h"

namespace dynamiccl::agents {

// Number of configurations that are tried because of the prior.
inline constexpr size_t kBestOfPrior = 5;

// Returns the candidates, best first. If `policy` is null, only the cost model is used. `best_of_model` is
// how many of the cost model's own best are added.
std::vector<ProbeCandidate> FirstCandidates(const Policy* policy, const CostModelInput& input,
                                            const ConfigQuestion& question, size_t best_of_model = 0);

// A measured configuration: its time over the time of NCCL's choice.
struct TriedConfig {
  CollectiveConfig config;
  double ratio = 1;
};

// Returns at most `most` configurations to try after all of `tried` were measured, best first. A measurement
// also corrects the prediction for similar configurations, most of all for those with the same algorithm and
// protocol and a similar number of channels. `in_use` is the time of the configuration in use over the time
// of NCCL's choice. The corrected prediction of a candidate is at most twice that time: predictions may be
// wrong by this factor. NCCL's choice and what was tried are left out.
std::vector<ProbeCandidate> FurtherCandidates(const Policy* policy, const CostModelInput& input,
                                              const ConfigQuestion& question,
                                              const std::vector<TriedConfig>& tried, double in_use,
                                              size_t most);

}  // namespace dynamiccl::agents
