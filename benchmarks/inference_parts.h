// SPDX-License-Identifier: Apache-2.0
// What the structure agent costs inside a job, part by part: a call whose state is looked up, one whose state
// is computed, and the parts of that computation, each alone.
#pragma once

#include <string>
#include <vector>

#include "src/policy/policy.h"
#include "src/policy/structure_network.h"

namespace dynamiccl {

struct PartCost {
  std::string part;
  // Nanoseconds a step, median and quarters of rounds in which all parts take turns.
  double warm_median = 0, warm_low = 0, warm_high = 0;
  // Of single steps, before each of which more data than any cache holds was gone through; with the reading
  // of the clock, which the part "nothing" shows.
  double cold_median = 0, cold_p95 = 0;
};

// By the arithmetic of `set`, which must run. 15 seconds.
std::vector<PartCost> MeasureInferenceParts(const Policy& policy, VectorSet set);

}  // namespace dynamiccl
