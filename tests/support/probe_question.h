// SPDX-License-Identifier: Apache-2.0
// Returns a question about configs on 16 ranks of two nodes, for the tests of code that lists configs to try.
#pragma once

#include <algorithm>
#include <vector>

#include "src/policy/probe_candidates.h"

namespace dynamiccl::test {

struct ProbeQuestion {
  CostModelInput input;
  ConfigQuestion question{Collective::kAllReduce, 64 << 20, NcclConfigs(Collective::kAllReduce)};

  ProbeQuestion() {
    input.fabric = {8, 2, 16, {1, 100}, {5, 20}};
    input.constants = NcclHopperConstants(2);
  }
};

inline bool Contains(const std::vector<ProbeCandidate>& candidates, const CollectiveConfig& config) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const ProbeCandidate& candidate) { return candidate.config == config; });
}

}  // namespace dynamiccl::test
