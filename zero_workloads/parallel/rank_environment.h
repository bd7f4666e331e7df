// SPDX-License-Identifier: Apache-2.0
// Determines this process's rank from the environment variables that launchers set.
#pragma once

#include <string>

#include "src/base/status.h"

namespace dynamiccl::zero {

// A process's place in the run, and where ranks meet.
struct RankEnvironment {
  int rank = 0;
  int world = 1;
  // The rank among the processes of its machine; selects the GPU.
  int local_rank = 0;
  // The launcher whose variables were read.
  std::string launcher = "none";
  // Host name or address of rank 0; empty at world size 1.
  std::string address;
  int port = 0;
};

// Looks for torchrun's variables first, then for those of Slurm, Open MPI and PMI (MPICH, Intel MPI). Without
// any the process is the only rank. An incomplete set, or a value that is no number or out of range, is an
// error that names the variable.
Result<RankEnvironment> ReadRankEnvironment();

}  // namespace dynamiccl::zero
