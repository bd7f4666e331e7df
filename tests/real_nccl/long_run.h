// SPDX-License-Identifier: Apache-2.0
// Many decisions in a world of real processes, which agree through the tail of ncclUniqueId: whether every
// rank decided the same and NCCL did the same on every rank.
#pragma once

#include <string>

#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl::real_nccl {

struct LongRun {
  NcclRelease release;  // 2.27 and later: its profiler interface tells the channels of every rank
  int nodes = 2;
  int ranks_per_node = 2;
  uint64_t decisions = 1'000'000;  // of each rank, rounded up
  std::string scratch;             // must exist; about 200 bytes a decision and rank
};

struct LongRunResult {
  std::string skipped;     // why nothing was run
  std::string trouble;     // what is wrong; empty where all holds
  uint64_t decisions = 0;  // of each rank
  uint64_t asked = 0;      // of rank 0, that named a pair
  uint64_t log_lines = 0;  // of NCCL on rank 0, each compared with its decision
  double seconds = 0;
};

LongRunResult RunLong(const LongRun& run);

}  // namespace dynamiccl::real_nccl
