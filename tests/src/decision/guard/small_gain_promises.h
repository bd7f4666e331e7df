// SPDX-License-Identifier: Apache-2.0
// Promises about what the whole guard finds if one config makes a step shorter by a small share, and about
// what it adopts if none does.
#pragma once

#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace dynamiccl::testing {

// In the jobs of both promises steps vary by 2 %, in addition to the noise of their calls.

// One channel of Ring/Simple on every key makes a step shorter by 0.5 to 5 %. The figures say in how many
// jobs the guard uses it after 400 and after 1,600 steps.
std::vector<Promise> SmallGain(const PromiseOptions& options, Timing timing);

// No config makes a step shorter. The figures say in how many jobs of 1,600 steps the guard adopts one.
std::vector<Promise> Alike(const PromiseOptions& options, Timing timing);

}  // namespace dynamiccl::testing
