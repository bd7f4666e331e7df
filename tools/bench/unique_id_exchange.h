// SPDX-License-Identifier: Apache-2.0
// Sends NCCL's unique id from rank 0 to the other ranks of a benchmark. The ranks connect over TCP to
// MASTER_ADDR:MASTER_PORT, environment variables that the launcher sets.
#pragma once

#include <chrono>
#include <string>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// The number of a rank in the job and on its host, and how to reach rank 0.
struct RankPlace {
  int rank = 0;
  int n_ranks = 1;
  int local_rank = 0;
  // Number of ranks on this host; 1 if the launcher does not state it.
  int n_local_ranks = 1;
  // Number of ranks that run as threads of this process; their local_rank values are consecutive.
  int ranks_in_process = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. An error names the
// variable that is missing or wrong.
Result<RankPlace> RankPlaceFromEnvironment();

// Returns rank 0's id on every rank. Only rank 0's `id` is used. The error is kTimeout when not all ranks
// connect in time.
Result<ncclUniqueId> ExchangeUniqueId(const RankPlace& place, const ncclUniqueId& id,
                                      std::chrono::milliseconds timeout);

}  // namespace dynamiccl
