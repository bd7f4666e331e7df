// SPDX-License-Identifier: Apache-2.0
// Promises about a job in which one collective of one size needs two configs: the program waits for gathers
// in the forward pass, while those in the backward pass run beside computation.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// The guard finds both configs, and the job gains more than with the better one of them for all gathers.
std::vector<Promise> TwoPhases(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
