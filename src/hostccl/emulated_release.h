// SPDX-License-Identifier: Apache-2.0
// HOSTCCL_EMULATE selects the family of NCCL releases whose behaviour hostccl shows to programs and tuners.
//
//                                    2.30 (2.28 to 2.30)           2.32 (2.31 and later)
//   a tuner's nChannels              replaces NCCL's number        only caps it; minCTAs raises it
//   ties in the cost table           lowest (algorithm, protocol)  highest
//   a negative cost on a valid pair  disables it                   wins
//   questions per batch              one                           two: the first has numPipeOps 0 and -1 in
//                                                                  the whole table; its answer is not used
//   PAT, several ranks a node        impossible                    priced FLT_MAX / 2: only if a tuner asks
//   PAT ReduceScatter with ncclAvg   impossible                    possible
//
// The family 2.22 reads answers as 2.30 does. It loads tuners up to version 3 of their interface, and no
// profiler.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl::hostccl {

// Ranks send each other these numbers (bootstrap_message.h).
enum class EmulatedRelease : uint8_t { k230 = 0, k232 = 1, k222 = 2 };

// Reads "2.22", "2.30" or "2.32" from HOSTCCL_EMULATE. All ranks must have the same release, which they check
// when they meet.
Result<EmulatedRelease> EmulatedFromEnvironment();

// Returns the number that ncclGetVersion returns: that of the latest release of the family.
int VersionCode(EmulatedRelease release);

// Returns the newest version of the tuner interface that the family asks a plugin for.
int NewestTuner(EmulatedRelease release);
// True if the family loads profiler plugins.
constexpr bool HasProfiler(EmulatedRelease release) {
  return release != EmulatedRelease::k222;
}

}  // namespace dynamiccl::hostccl
