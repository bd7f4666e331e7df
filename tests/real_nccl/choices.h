// SPDX-License-Identifier: Apache-2.0
// Reads what NCCL chose for each call of the driver's program "collectives", in one form for all releases.
// Each choice comes from NCCL's log and is checked against the kernel that NCCL launched.
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
  Protocol protocol = Protocol::kUndefined;  // kUndefined also where the log hides it, see NcclRelease
  int channels = 0;
  int threads = 0;  // threads of each channel

  bool operator==(const Choice&) const = default;
};

// Returns whether NCCL up to 2.21 launches this number of threads for Ring or Tree with LL or Simple. The
// number includes the warps that Simple adds for synchronisation (NCCL src/enqueue.cc, topoGetAlgoInfo). Some
// numbers fit both protocols.
bool FitsThreads(Algorithm algorithm, Protocol protocol, int threads);

std::ostream& operator<<(std::ostream& out, const Choice& choice);

// Returns rank 0's choices from the driver's output. Returns nothing and sets *error when a call has no
// choice in the log, or when NCCL launched another choice than it logged.
std::optional<std::vector<Choice>> ChoicesOf(const std::string& output, const NcclRelease& release, int ranks,
                                             std::string* error);

// Returns whether all ranks launched the same kernels with the same number of channels.
bool AllRanksLaunchedAlike(const std::string& output, int ranks);

}  // namespace dynamiccl::real_nccl
