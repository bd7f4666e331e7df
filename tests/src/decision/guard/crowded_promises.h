// SPDX-License-Identifier: Apache-2.0
// Promises about a job in which NCCL's own choice takes multiprocessors from the computation that runs at the
// same time.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// The DDP job that was measured on an H100 (docs/results/gpu.md). The program waits for no transfer. No
// config is faster by its own time, but every config with fewer channels than NCCL's makes the step shorter.
std::vector<Promise> Crowded(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
