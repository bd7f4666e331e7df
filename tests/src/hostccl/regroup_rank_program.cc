// SPDX-License-Identifier: Apache-2.0
// One rank as a process of its own that makes communicators with fewer and with more ranks than the first:
// regroup_rank_program RANK N_RANKS READ_FD WRITE_FD BEHAVIOUR. Unique ids come through a pipe. The exit code
// is 0 if the rank behaves as expected.
//   shrink   shrinks by rank 1, and then shrinks the result by its first rank
//   halve    shrinks by the odd ranks; the even ranks continue
//   bereave  rank 0, which made the id, kills itself in a call; the others continue without it
//   grow     all ranks but the last exist, and the last joins; then the communicator shrinks by rank 0
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"

namespace {

int Fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, ncclGetLastError(nullptr));
  return 1;
}

// A unique id for rank `to`. The ids lie in a pipe of which every rank has both ends.
struct PostedId {
  int to = 0;
  ncclUniqueId id{};
};

bool Post(int fd, const PostedId& posted) {
  return ::write(fd, &posted, sizeof(posted)) == sizeof(posted);
}

// Reads the id for `rank`. Writes ids for other ranks back to the pipe.
bool Take(const int (&pipe_ends)[2], int rank, ncclUniqueId& id) {
  PostedId posted;
  while (::read(pipe_ends[0], &posted, sizeof(posted)) == sizeof(posted)) {
    id = posted.id;
    if (posted.to == rank) return true;
    if (!Post(pipe_ends[1], posted)) return false;
    ::sched_yield();
  }
  return false;
}

struct Rank {
  int rank = 0;
  int n_ranks = 1;
  int pipe_ends[2] = {-1, -1};
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Checks a sum and a gather over all ranks of a communicator, for a small buffer and for buffers of several
// pieces.
int CheckCalls(ncclComm_t comm, cudaStream_t stream, int expected_ranks) {
  int n = 0;
  int rank = -1;
  if (ncclCommCount(comm, &n) != ncclSuccess || n != expected_ranks) return Fail("number of ranks");
  if (ncclCommUserRank(comm, &rank) != ncclSuccess) return Fail("rank");
  for (const size_t count : {size_t{1}, size_t{70'000}, size_t{1'000'003}}) {
    std::vector<int> mine(count);
    std::iota(mine.begin(), mine.end(), rank);
    std::vector<int> sum(count);
    std::vector<int> all(count * static_cast<size_t>(n));
    ncclResult_t result = ncclAllReduce(mine.data(), sum.data(), count, ncclInt, ncclSum, comm, stream);
    if (result == ncclSuccess) result = ncclAllGather(mine.data(), all.data(), count, ncclInt, comm, stream);
    if (result == ncclSuccess) result = hostcclStreamSynchronize(stream);
    if (result != ncclSuccess) return Fail("calls");
    for (size_t i = 0; i < count; ++i) {
      if (sum[i] != n * static_cast<int>(i) + n * (n - 1) / 2) return Fail("wrong sum");
      const int from = static_cast<int>(i) % n;
      if (all[static_cast<size_t>(from) * count + i] != static_cast<int>(i) + from)
        return Fail("wrong block");
    }
  }
  return 0;
}

// Shrinks `comm` by the excluded ranks and checks the new communicator. Returns that communicator in `rest`.
int ShrinkTo(ncclComm_t comm, std::vector<int> excluded, int flags, cudaStream_t stream, ncclComm_t& rest) {
  int n = 0;
  if (ncclCommCount(comm, &n) != ncclSuccess) return Fail("count");
  if (ncclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), &rest, nullptr, flags) !=
      ncclSuccess) {
    return Fail("shrink");
  }
  return CheckCalls(rest, stream, n - static_cast<int>(excluded.size()));
}

int Shrink(const Rank& self) {
  if (self.rank == 1) return 0;
  ncclComm_t rest = nullptr;
  if (ShrinkTo(self.comm, {1}, NCCL_SHRINK_DEFAULT, self.stream, rest) != 0) return 1;
  ncclComm_t again = nullptr;
  if (self.rank != 0 && ShrinkTo(rest, {0}, NCCL_SHRINK_DEFAULT, self.stream, again) != 0) return 1;
  if (ncclCommDestroy(again) != ncclSuccess || ncclCommDestroy(rest) != ncclSuccess) return Fail("destroy");
  return 0;
}

int Halve(const Rank& self) {
  if (self.rank % 2 != 0) return 0;
  std::vector<int> odd;
  for (int rank = 1; rank < self.n_ranks; rank += 2) odd.push_back(rank);
  ncclComm_t even = nullptr;
  if (ShrinkTo(self.comm, odd, NCCL_SHRINK_DEFAULT, self.stream, even) != 0) return 1;
  return ncclCommDestroy(even) == ncclSuccess ? 0 : Fail("destroy");
}

int Bereave(const Rank& self) {
  std::vector<float> data(300'000, 1);
  ncclResult_t result = ncclSuccess;
  for (int call = 0; call < 100 && result == ncclSuccess; ++call) {
    if (call == 5 && self.rank == 0) ::raise(SIGKILL);
    result = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclMax, self.comm, self.stream);
    if (result == ncclSuccess) result = hostcclStreamSynchronize(self.stream);
  }
  if (result != ncclRemoteError) return Fail("the loss of rank 0 was not noticed");
  ncclComm_t rest = nullptr;
  if (ShrinkTo(self.comm, {0}, NCCL_SHRINK_ABORT, self.stream, rest) != 0) return 1;
  return ncclCommDestroy(rest) == ncclSuccess ? 0 : Fail("destroy");
}

// `self.comm` is null on the rank that joins.
int Grow(const Rank& self) {
  const int newcomer = self.n_ranks - 1;
  PostedId posted{newcomer, {}};
  const bool brings = self.rank == 0;
  if (brings &&
      (ncclCommGetUniqueId(self.comm, &posted.id) != ncclSuccess || !Post(self.pipe_ends[1], posted)))
    return Fail("id");
  if (self.comm == nullptr && !Take(self.pipe_ends, self.rank, posted.id)) return Fail("pipe");
  const ncclUniqueId* const id = brings || self.comm == nullptr ? &posted.id : nullptr;
  ncclComm_t grown = nullptr;
  if (ncclCommGrow(self.comm, self.n_ranks, id, self.comm == nullptr ? self.rank : -1, &grown, nullptr) !=
      ncclSuccess) {
    return Fail("grow");
  }
  if (CheckCalls(grown, self.stream, self.n_ranks) != 0) return 1;
  if (self.comm != nullptr && CheckCalls(self.comm, self.stream, self.n_ranks - 1) != 0) return 1;
  ncclComm_t rest = nullptr;
  if (self.rank != 0 && ShrinkTo(grown, {0}, NCCL_SHRINK_DEFAULT, self.stream, rest) != 0) return 1;
  if (ncclCommDestroy(rest) != ncclSuccess || ncclCommDestroy(grown) != ncclSuccess) return Fail("destroy");
  return 0;
}

// Creates the first communicator, over `n_ranks` ranks.
int Init(Rank& self, int n_ranks) {
  ncclUniqueId id{};
  if (self.rank == 0) {
    if (ncclGetUniqueId(&id) != ncclSuccess) return Fail("id");
    for (int other = 1; other < n_ranks; ++other) {
      if (!Post(self.pipe_ends[1], {other, id})) return Fail("pipe");
    }
  } else if (!Take(self.pipe_ends, self.rank, id)) {
    return Fail("pipe");
  }
  if (ncclCommInitRank(&self.comm, n_ranks, id, self.rank) != ncclSuccess) return Fail("init");
  return CheckCalls(self.comm, self.stream, n_ranks);
}

int Run(Rank& self, const std::string& behaviour) {
  if (hostcclStreamCreate(&self.stream) != ncclSuccess) return Fail("stream");
  const bool grows = behaviour == "grow";
  const int first_ranks = self.n_ranks - (grows ? 1 : 0);
  if (self.rank < first_ranks && Init(self, first_ranks) != 0) return 1;
  const int code = grows                   ? Grow(self)
                   : behaviour == "shrink" ? Shrink(self)
                   : behaviour == "halve"  ? Halve(self)
                                           : Bereave(self);
  if (code != 0) return code;
  const ncclResult_t ended = behaviour == "bereave" ? ncclCommAbort(self.comm) : ncclCommDestroy(self.comm);
  return ended == ncclSuccess && hostcclStreamDestroy(self.stream) == ncclSuccess ? 0 : Fail("end");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  Rank self{.rank = std::atoi(argv[1]),
            .n_ranks = std::atoi(argv[2]),
            .pipe_ends = {std::atoi(argv[3]), std::atoi(argv[4])}};
  return Run(self, argv[5]);
}
