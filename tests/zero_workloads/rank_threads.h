// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of the test. So one rank alone can be told what to do, and the test sees the tensors
// of all ranks.
#pragma once

#include <functional>

#include "zero_workloads/parallel/grid.h"

namespace dynamiccl::zero {

struct GridThreads {
  int ranks = 1;
  int tensor_degree = 1;
  int stage = 0;  // for labels
  int shard_group = 0;
  int secondary_group = 0;
};

// Runs `rank` on a thread for each rank, each with its place in the grid. An exception that leaves it fails
// the test with its text; the other ranks' communicators are aborted then.
void RunGridThreads(const GridThreads& threads, const std::function<void(Grid&)>& rank);
// The same without tensor ranks: a communicator over all of them.
void RunRankThreads(int ranks, int stage, const std::function<void(ProcessGroup*)>& rank);

}  // namespace dynamiccl::zero
