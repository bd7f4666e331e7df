// SPDX-License-Identifier: Apache-2.0
// Sends rank 0's unique id to the other ranks of a benchmark, over TCP at MASTER_ADDR:MASTER_PORT, the
// launcher's variables.
#pragma once

#include <chrono>
#include <string>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// A rank's place in the job and how to reach rank 0.
struct RankPlace {
  int rank = 0;
  int n_ranks = 1;
  int local_rank = 0;
  // Number of ranks on this host; 1 also where the launcher does not state it.
  int n_local_ranks = 1;
  // Number of ranks that run as threads of this process; their local_rank values are consecutive.
  int ranks_in_process = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. An error names the
// variable.
Result<RankPlace> RankPlaceFromEnvironment();

// Returns rank 0's id on every rank. `id` is used on rank 0 only. kTimeout when not all ranks come in time.
Result<ncclUniqueId> ExchangeUniqueId(const RankPlace& place, const ncclUniqueId& id,
                                      std::chrono::milliseconds timeout);

}  // namespace dynamiccl
