// SPDX-License-Identifier: Apache-2.0
// Promises about the loss of jobs of 150 to 2,000 steps in which NCCL's choice is the best.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

std::vector<Promise> ShortJobs(const PromiseOptions& options, Timing timing);
// In these jobs also the policy's choice is 1.2 times slower on every key, and it is used from the first call
// on.
std::vector<Promise> ShortJobsOfSlowerPolicy(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
