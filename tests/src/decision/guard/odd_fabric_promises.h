// SPDX-License-Identifier: Apache-2.0
// Promises about the gain of a job of 400 steps on a fabric that the cost model does not describe.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// The job begins with findings of jobs on other odd fabrics, where calls are as slow. The figures say what it
// gains in its first steps, and what it costs if calls are slow for another reason.
std::vector<Promise> Elsewhere(const PromiseOptions& options, Timing timing);

// A link becomes slow in a place where an earlier job found nothing better than NCCL's choice. The figures
// say what a later job gains there.
std::vector<Promise> SlowSince(const PromiseOptions& options, Timing timing);

// On every key one config takes half of NCCL's time, wherever the model ranks it. No other config is faster
// than NCCL's choice.
std::vector<Promise> OddFabric(const PromiseOptions& options, Timing timing);

// The job pauses from time to time, as for a checkpoint. The figures compare its gain with that of a job
// without pauses.
std::vector<Promise> Checkpoints(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
