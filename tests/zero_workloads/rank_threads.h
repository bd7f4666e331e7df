// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of the test. So the test can control a single rank, and sees the tensors of all
// ranks.
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

// Runs `rank` on one thread per rank, each with its place in the grid. An exception that leaves `rank` fails
// the test with the exception's text. The other ranks' communicators are then aborted.
void RunGridThreads(const GridThreads& threads, const std::function<void(Grid&)>& rank);
// The same without tensor ranks, on one communicator over all ranks.
void RunRankThreads(int ranks, int stage, const std::function<void(ProcessGroup*)>& rank);

}  // namespace dynamiccl::zero
