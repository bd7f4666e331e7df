// SPDX-License-Identifier: Apache-2.0
// What jobs of 150 to 2,000 steps lose in which NCCL's choice is the best of all.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

std::vector<Promise> ShortJobs(const PromiseOptions& options, Timing timing);
// And the policy's choice is 1.2 times slower on every key: it is tried from the first call on.
std::vector<Promise> ShortJobsOfSlowerPolicy(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
