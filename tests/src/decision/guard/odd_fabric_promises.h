// SPDX-License-Identifier: Apache-2.0
// What a job of 400 steps gains on a fabric that the cost model does not see.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// What jobs on some odd fabrics have found, used by jobs on others that look alike: what these gain in their
// first steps, and what it costs where the same circumstances have another reason.
std::vector<Promise> Elsewhere(const PromiseOptions& options, Timing timing);

// A job in a place where an earlier one found nothing better than NCCL's choice, before a link became slow.
std::vector<Promise> SlowSince(const PromiseOptions& options, Timing timing);

// One config takes half of NCCL's time on every key, wherever the model ranks it, and no other one is faster.
std::vector<Promise> OddFabric(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
