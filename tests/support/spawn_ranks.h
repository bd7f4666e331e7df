// SPDX-License-Identifier: Apache-2.0
// Runs ranks as threads of the test.
#pragma once

#include <functional>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::testing {

// One rank of a communicator over all threads, with its own stream.
struct RankContext {
  int rank = 0;
  int n_ranks = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Runs fn(context) on n threads, each with an initialised communicator and a stream, and destroys both.
// Returns the first failure of init or destroy.
inline ncclResult_t SpawnRanks(int n, const std::function<void(RankContext&)>& fn) {
  ncclUniqueId id{};
  if (const ncclResult_t made = ncclGetUniqueId(&id); made != ncclSuccess) return made;
  std::vector<ncclResult_t> results(static_cast<size_t>(n), ncclSuccess);
  SpawnThreads(n, [&](int rank) {
    RankContext context{rank, n, nullptr, nullptr};
    ncclResult_t& result = results[static_cast<size_t>(rank)];
    result = ncclCommInitRank(&context.comm, n, id, rank);
    if (result == ncclSuccess) result = hostcclStreamCreate(&context.stream);
    if (result != ncclSuccess) return;
    fn(context);
    hostcclStreamDestroy(context.stream);
    if (context.comm != nullptr) result = ncclCommDestroy(context.comm);
  });
  for (const ncclResult_t result : results) {
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace dynamiccl::testing
