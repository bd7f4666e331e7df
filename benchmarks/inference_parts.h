// SPDX-License-Identifier: Apache-2.0
// What the structure agent costs inside a job, part by part: a call whose state is looked up, a call whose
// state is computed, and each part of that computation alone.
#pragma once

#include <string>
#include <vector>

#include "src/policy/policy.h"
#include "src/policy/structure_network.h"

namespace dynamiccl {

// Cost of one part, in nanoseconds.
struct PartCost {
  std::string part;
  // A step with warm caches: median and quartiles of rounds in which all parts take turns.
  double warm_median = 0, warm_low = 0, warm_high = 0;
  // Single steps, before each of which more data than any cache holds was touched. They include the reading
  // of the clock, which the part "nothing" shows.
  double cold_median = 0, cold_p95 = 0;
};

// Measures with the instructions of `set`, which this machine must support. Takes 15 seconds.
std::vector<PartCost> MeasureInferenceParts(const Policy& policy, VectorSet set);

}  // namespace dynamiccl
