// SPDX-License-Identifier: Apache-2.0
// What a job gains where NCCL's own choice takes multiprocessors from the computation beside it.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// The DDP job that was measured on an H100 (docs/results/gpu.md): the program waits for no transfer, no
// config is faster by its own time, and every one with fewer channels than NCCL's makes the step shorter.
std::vector<Promise> Crowded(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
