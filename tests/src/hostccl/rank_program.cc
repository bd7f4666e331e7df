// SPDX-License-Identifier: Apache-2.0
// One rank as a process of its own, for process_ranks_test: rank_program RANK N_RANKS READ_FD WRITE_FD
// BEHAVIOUR. The unique id comes through a pipe; rank 0 writes one copy for each of the others. Exit code 0:
// as expected.
//   sum   30 AllReduce calls, each checked
//   opposite  two communicators, which odd ranks use in the other order
//   die   as sum, but rank 1 kills itself after the tenth call; the others must get ncclRemoteError
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "src/nccl_abi/host_stream.h"

namespace {

int Fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, ncclGetLastError(nullptr));
  return 1;
}

int Run(int rank, int n_ranks, const ncclUniqueId& id, bool one_dies) {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  if (ncclCommInitRank(&comm, n_ranks, id, rank) != ncclSuccess) return Fail("init");
  if (hostcclStreamCreate(&stream) != ncclSuccess) return Fail("stream");
  std::vector<float> data(70'000);
  for (int call = 0; call < 30; ++call) {
    if (one_dies && call == 10 && rank == 1) ::raise(SIGKILL);
    data.assign(data.size(), static_cast<float>(rank + 1));
    ncclResult_t result =
        ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, stream);
    if (result == ncclSuccess) result = hostcclStreamSynchronize(stream);
    if (result == ncclRemoteError && one_dies && call >= 10) return 0;
    if (result != ncclSuccess) return Fail("all-reduce");
    if (data.back() != static_cast<float>(n_ranks * (n_ranks + 1) / 2)) return Fail("wrong sum");
  }
  hostcclStreamDestroy(stream);
  ncclCommDestroy(comm);
  return one_dies ? 1 : 0;
}

// Each call has a stream of its own, as two independent parts of a program would have.
int RunOpposite(int rank, int n_ranks, const ncclUniqueId& id) {
  ncclComm_t comms[2] = {};
  cudaStream_t streams[2] = {};
  if (ncclCommInitRank(&comms[0], n_ranks, id, rank) != ncclSuccess) return Fail("init");
  if (ncclCommSplit(comms[0], 0, rank, &comms[1], nullptr) != ncclSuccess) return Fail("split");
  for (cudaStream_t& stream : streams) hostcclStreamCreate(&stream);
  for (int call = 0; call < 200; ++call) {
    std::vector<float> data[2] = {std::vector<float>(64, 1), std::vector<float>(64, 1)};
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (turn + rank) % 2;
      float* const values = data[which].data();
      if (ncclAllReduce(values, values, 64, ncclFloat, ncclSum, comms[which], streams[which]) != ncclSuccess)
        return Fail("all-reduce");
    }
    for (int which = 0; which < 2; ++which) {
      if (hostcclStreamSynchronize(streams[which]) != ncclSuccess) return Fail("synchronize");
      if (data[which].back() != static_cast<float>(n_ranks)) return Fail("wrong sum");
    }
  }
  for (cudaStream_t stream : streams) hostcclStreamDestroy(stream);
  for (ncclComm_t comm : comms) ncclCommDestroy(comm);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[1]);
  const int n_ranks = std::atoi(argv[2]);
  ncclUniqueId id{};
  if (rank == 0) {
    if (ncclGetUniqueId(&id) != ncclSuccess) return Fail("id");
    for (int other = 1; other < n_ranks; ++other) {
      if (::write(std::atoi(argv[4]), &id, sizeof(id)) != sizeof(id)) return Fail("write");
    }
  } else if (::read(std::atoi(argv[3]), &id, sizeof(id)) != sizeof(id)) {
    return Fail("read");
  }
  if (std::strcmp(argv[5], "opposite") == 0) return RunOpposite(rank, n_ranks, id);
  return Run(rank, n_ranks, id, std::strcmp(argv[5], "die") == 0);
}
