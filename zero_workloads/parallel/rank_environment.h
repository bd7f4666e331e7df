// SPDX-License-Identifier: Apache-2.0
// Which rank this process is, from the variables that launchers set.
#pragma once

#include <string>

#include "src/base/status.h"

namespace dynamiccl::zero {

struct RankEnvironment {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  std::string launcher = "none";  // whose variables were read
  std::string address;            // where rank 0 is met; empty at world size 1
  int port = 0;
};

// torchrun's variables first, then Slurm's, Open MPI's, and PMI's (MPICH, Intel MPI); none of them: one rank.
// A set that is incomplete, not a number or out of range is an error that names the variable.
Result<RankEnvironment> ReadRankEnvironment();

}  // namespace dynamiccl::zero
