// SPDX-License-Identifier: Apache-2.0
// Takes many decisions in a world of real processes, which agree through the tail of ncclUniqueId. Checks
// that every rank decided the same and that NCCL did the same on every rank.
#pragma once

#include <string>

#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl::real_nccl {

struct LongRun {
  NcclRelease release;  // 2.27 or later, whose profiler interface reports the channels of every rank
  int nodes = 2;
  int ranks_per_node = 2;
  uint64_t decisions = 1'000'000;  // of each rank, rounded up to whole rounds
  std::string scratch;             // must exist; takes about 200 bytes for each decision of each rank
};

struct LongRunResult {
  std::string skipped;     // why nothing was run; empty otherwise
  std::string trouble;     // what is wrong; empty when everything holds
  uint64_t decisions = 0;  // decisions of each rank
  uint64_t asked = 0;      // decisions of rank 0 that named a pair
  uint64_t log_lines = 0;  // lines of NCCL's log on rank 0, each compared with its decision
  double seconds = 0;
};

LongRunResult RunLong(const LongRun& run);

}  // namespace dynamiccl::real_nccl
