// SPDX-License-Identifier: Apache-2.0
// How the ranks of a benchmark get rank 0's unique id: over TCP at MASTER_ADDR:MASTER_PORT, the launcher's
// variables.
#pragma once

#include <chrono>
#include <string>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

struct RankPlace {
  int rank = 0;
  int n_ranks = 1;
  int local_rank = 0;
  int n_local_ranks = 1;     // on this host; 1 as well where the launcher does not say
  int ranks_in_process = 1;  // ranks that are threads of this process, neighbours in local_rank
  std::string master_address = "127.0.0.1";
  int master_port = 0;
};

// From RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; an error names the
// variable.
Result<RankPlace> RankPlaceFromEnvironment();

// `id` is rank 0's; the others' argument is ignored. Fails with kTimeout when not all ranks come.
Result<ncclUniqueId> ExchangeUniqueId(const RankPlace& place, const ncclUniqueId& id,
                                      std::chrono::milliseconds timeout);

}  // namespace dynamiccl
