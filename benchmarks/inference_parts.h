// SPDX-License-Identifier: Apache-2.0
// Measures what each part of the structure agent costs inside a job: a call whose state is looked up, a call
// whose state is computed, and each part of that computation.
#pragma once

#include <string>
#include <vector>

#include "src/policy/policy.h"
#include "src/policy/structure_network.h"

namespace dynamiccl {

// Cost of one part, in nanoseconds.
struct PartCost {
  std::string part;
  // Time of a step with warm caches: median and quartiles over rounds in which all parts take turns.
  double warm_median = 0, warm_low = 0, warm_high = 0;
  // Time of single steps with cold caches: before each step, more data was touched than any cache holds.
  // These times include one reading of the clock, which the part "nothing" shows.
  double cold_median = 0, cold_p95 = 0;
};

// Measures with the instructions of `set`, which this machine must support. Takes 15 seconds.
std::vector<PartCost> MeasureInferenceParts(const Policy& policy, VectorSet set);

}  // namespace dynamiccl
