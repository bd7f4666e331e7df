// SPDX-License-Identifier: Apache-2.0
// What NCCL chose for each call of the driver's program "collectives", in one form for all releases: its own
// log of the choice, held against the kernel that it launched for it.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "src/collective/algorithm.h"
#include "src/collective/protocol.h"
#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl::real_nccl {

struct Choice {
  std::string function;  // "AllReduce"
  size_t bytes = 0;      // NCCL's total
  Algorithm algorithm = Algorithm::kUndefined;
  Protocol protocol = Protocol::kUndefined;  // also where the log hides it, see NcclRelease
  int channels = 0;
  int threads = 0;  // of a channel

  bool operator==(const Choice&) const = default;
};

// Whether NCCL up to 2.21 launches so many threads for Ring or Tree with LL or Simple: its warps, and those
// that Simple adds for synchronisation (NCCL src/enqueue.cc, topoGetAlgoInfo). Some numbers fit two
// protocols.
bool FitsThreads(Algorithm algorithm, Protocol protocol, int threads);

std::ostream& operator<<(std::ostream& out, const Choice& choice);

// Rank 0's. Nothing, with *error set, where a call has no choice in the log or another one than was launched.
std::optional<std::vector<Choice>> ChoicesOf(const std::string& output, const NcclRelease& release, int ranks,
                                             std::string* error);

// Whether all ranks launched the same kernels with the same number of channels.
bool AllRanksLaunchedAlike(const std::string& output, int ranks);

}  // namespace dynamiccl::real_nccl
