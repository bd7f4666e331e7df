// SPDX-License-Identifier: Apache-2.0
// One rank of an NCCL job that hangs. After ten sums rank 2 does what $JOB_FAULT names, and no rank returns
// from the next call. The program ends when the file $JOB_END exists. RANK and WORLD_SIZE come from the
// environment.
//   hanging_job <file for the unique id> <ignored>
// The faults of rank 2. away: it issues nothing more. size, operation: its next call differs in this from the
// call of the other ranks. init: it does not take part in making a second communicator. kill: it kills
// itself. leave: it ends by _Exit(7).
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"
#include "tests/integration/unique_id_by_file.h"

namespace {

void EndWhenTold() {
  while (::access(std::getenv("JOB_END"), F_OK) != 0) ::usleep(5000);
  std::_Exit(0);
}

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int rank = 0;
  int n_ranks = 1;
};

void Sum(const Rank& rank, size_t count) {
  std::vector<float> data(count, 1.0f);
  CHECK_NCCL(ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, rank.comm, rank.stream));
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
}

void Gather(const Rank& rank, size_t count) {
  std::vector<float> part(count), whole(count * static_cast<size_t>(rank.n_ranks));
  CHECK_NCCL(ncclAllGather(part.data(), whole.data(), count, ncclFloat32, rank.comm, rank.stream));
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
}

void MakeAnother(const Rank& rank, const std::string& path) {
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclCommInitRank(&comm, rank.n_ranks, UniqueIdByFile(path + ".second", rank.rank), rank.rank));
}

// Does what rank 2 does while the others issue the sum of 1000.
void DoWrong(const Rank& rank, const std::string& fault) {
  if (fault == "kill") ::kill(::getpid(), SIGKILL);
  if (fault == "leave") std::_Exit(7);
  if (fault == "size") Sum(rank, 999);
  if (fault == "operation") Gather(rank, 1000);
  while (true) ::pause();
}

}  // namespace

int main(int, char** argv) {
  Rank rank;
  rank.rank = std::atoi(std::getenv("RANK"));
  rank.n_ranks = std::atoi(std::getenv("WORLD_SIZE"));
  const std::string fault = std::getenv("JOB_FAULT");
  std::thread(EndWhenTold).detach();
  CHECK_NCCL(ncclCommInitRank(&rank.comm, rank.n_ranks, UniqueIdByFile(argv[1], rank.rank), rank.rank));
  CHECK_NCCL(hostcclStreamCreate(&rank.stream));
  for (size_t i = 0; i < 10; ++i) Sum(rank, 100 + i);
  if (rank.rank == 2) DoWrong(rank, fault);
  if (fault == "init") MakeAnother(rank, argv[1]);
  Sum(rank, 1000);
  while (true) ::pause();
}
