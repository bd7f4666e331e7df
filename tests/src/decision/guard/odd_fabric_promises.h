// SPDX-License-Identifier: Apache-2.0
// What a job of 400 steps gains on a fabric that the cost model does not see.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// Jobs on other odd fabrics begin with what some have found on theirs, where calls are as slow. The figures
// say what they gain in their first steps, and what it costs where calls are slow for another reason.
std::vector<Promise> Elsewhere(const PromiseOptions& options, Timing timing);

// A link becomes slow in a place where an earlier job found nothing better than NCCL's choice. The figures
// say what a later job gains there.
std::vector<Promise> SlowSince(const PromiseOptions& options, Timing timing);

// One config takes half of NCCL's time on every key, wherever the model ranks it, and no other one is faster.
std::vector<Promise> OddFabric(const PromiseOptions& options, Timing timing);

// The job stands still now and then, as it does to write a checkpoint. The figures say what it gains beside
// one that never does.
std::vector<Promise> Checkpoints(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
