// SPDX-License-Identifier: Apache-2.0
// One rank as a process of its own, for process_ranks_test: rank_program RANK N_RANKS READ_FD WRITE_FD
// BEHAVIOUR. The unique id comes through a pipe; rank 0 writes one copy for each of the others. The exit code
// is 0 if the rank behaves as expected.
//   sum   30 AllReduce calls, each checked
//   opposite  two communicators, which odd ranks use in the opposite order
//   life  init, 5 AllReduce calls, a split, one call on the split communicator, finalize, destroy. Exit code
//         0: success, 3: ncclRemoteError, 1: anything else
//   short_life  as life, but with fewer elements; rank 0 comes late and is killed soon after
//   die   as sum, but rank 1 kills itself after the tenth call; the others must get ncclRemoteError
//   orphan   as die, but a forked child of rank 1 lives longer; the others must not wait for the time-out
//   orphan_hosts  as orphan, with each rank on a "host" of its own
//   shrink   as die, but the others then continue on a communicator without rank 1
//   plugin   the tuner's init fails on rank 1, which gets the plugin's own result; the others get
//            ncclRemoteError
//   settings rank 1 has another HOSTCCL_CHANNELS: all ranks must get ncclInvalidArgument, with the setting
//            and the rank in the message
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/tuner_v5.h"

namespace {

bool plugin_fails = false;

// hostccl returns this result for no other reason in this program.
ncclResult_t InitTuner(void**, uint64_t, size_t, size_t, ncclDebugLogger_t, ncclNvlDomainInfo_v5_t*,
                       ncclTunerConstants_v5_t*) {
  return plugin_fails ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ChooseNothing(void*, ncclFunc_t, size_t, int, float**, int, int, int, int*) {
  return ncclSuccess;
}

ncclResult_t FinalizeTuner(void*) {
  return ncclSuccess;
}

}  // namespace

// The program is its own tuner plugin (NCCL_TUNER_PLUGIN=STATIC_PLUGIN).
extern "C" __attribute__((visibility("default")))
const ncclTuner_v5_t ncclTunerPlugin_v5 = {"rank_program", InitTuner, ChooseNothing, FinalizeTuner};

namespace {

int Fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, ncclGetLastError(nullptr));
  return 1;
}

// Shrinks `comm` by the dead rank 1 and checks a sum of ones on the new communicator.
int GoOnWithoutTheDead(ncclComm_t comm, int n_ranks, cudaStream_t stream) {
  int dead = 1;
  ncclComm_t rest = nullptr;
  if (ncclCommShrink(comm, &dead, 1, &rest, nullptr, NCCL_SHRINK_ABORT) != ncclSuccess) return Fail("shrink");
  float value = 1;
  ncclResult_t result = ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, rest, stream);
  if (result == ncclSuccess) result = hostcclStreamSynchronize(stream);
  if (result != ncclSuccess || value != static_cast<float>(n_ranks - 1)) return Fail("sum after the shrink");
  return ncclCommDestroy(rest) == ncclSuccess && ncclCommAbort(comm) == ncclSuccess ? 0 : Fail("destroy");
}

// Forks a child that lives until the test closes its end of the pipe. The test does so when all ranks have
// ended.
void LeaveChildBehind(int read_end) {
  if (::fork() != 0) return;
  char nothing = 0;
  while (::read(read_end, &nothing, 1) > 0) {
  }
  ::_exit(0);
}

// Ends a rank whose peer has died. Fails if only the time-out has revealed the death.
int EndAfterDeath(ncclComm_t comm) {
  const std::string reason = ncclGetLastError(comm);
  if (reason.find("no progress") != std::string::npos) return Fail("only the time-out told of the death");
  return ncclCommAbort(comm) == ncclSuccess ? 0 : Fail("abort");
}

int InitWithOtherSettings(int rank, int n_ranks, const ncclUniqueId& id) {
  if (rank == 1) ::setenv("HOSTCCL_CHANNELS", "3", 1);
  ncclComm_t comm = nullptr;
  if (ncclCommInitRank(&comm, n_ranks, id, rank) != ncclInvalidArgument) return Fail("init was not refused");
  const std::string text = ncclGetLastError(nullptr);
  const bool told =
      text.find("HOSTCCL_CHANNELS") != std::string::npos && text.find("rank 1") != std::string::npos;
  return told ? 0 : Fail("the error does not say which setting and rank");
}

int InitWithFailingPlugin(int rank, int n_ranks, const ncclUniqueId& id) {
  ::setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 1);
  plugin_fails = rank == 1;
  ncclComm_t comm = nullptr;
  const ncclResult_t expected = plugin_fails ? ncclUnhandledCudaError : ncclRemoteError;
  const ncclResult_t result = ncclCommInitRank(&comm, n_ranks, id, rank);
  return result == expected ? 0 : Fail(ncclGetErrorString(result));
}

int Run(int rank, int n_ranks, const ncclUniqueId& id, const std::string& behaviour, int read_end) {
  if (behaviour == "orphan_hosts") ::setenv("HOSTCCL_HOSTID", std::to_string(rank).c_str(), 1);
  if (behaviour == "plugin") return InitWithFailingPlugin(rank, n_ranks, id);
  if (behaviour == "settings") return InitWithOtherSettings(rank, n_ranks, id);
  const bool one_dies = behaviour != "sum";
  // Between hosts, the data of rank 1's last call may still be unsent when it dies.
  const int last_whole = behaviour == "orphan_hosts" ? 8 : 9;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  if (ncclCommInitRank(&comm, n_ranks, id, rank) != ncclSuccess) return Fail("init");
  if (hostcclStreamCreate(&stream) != ncclSuccess) return Fail("stream");
  std::vector<float> data(70'000);
  for (int call = 0; call < 30; ++call) {
    if (one_dies && call == 10 && rank == 1) {
      if (behaviour.starts_with("orphan")) LeaveChildBehind(read_end);
      ::raise(SIGKILL);
    }
    data.assign(data.size(), static_cast<float>(rank + 1));
    ncclResult_t result =
        ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, stream);
    if (result == ncclSuccess) result = hostcclStreamSynchronize(stream);
    if (result == ncclRemoteError && one_dies && call > last_whole) {
      if (behaviour == "shrink") return GoOnWithoutTheDead(comm, n_ranks, stream);
      return EndAfterDeath(comm);
    }
    if (result != ncclSuccess) return Fail("all-reduce");
    if (data.back() != static_cast<float>(n_ranks * (n_ranks + 1) / 2)) return Fail("wrong sum");
  }
  hostcclStreamDestroy(stream);
  ncclCommDestroy(comm);
  return one_dies ? 1 : 0;
}

// Each communicator has a stream of its own, as two independent parts of a program would have.
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

// Returns the exit code of the behaviour "life".
int CodeOf(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return 0;
  if (result == ncclRemoteError) return 3;
  return Fail(what);
}

int Sum(ncclComm_t comm, cudaStream_t stream, size_t count) {
  std::vector<float> data(count, 1);
  ncclResult_t result = ncclAllReduce(data.data(), data.data(), count, ncclFloat, ncclSum, comm, stream);
  if (result == ncclSuccess) result = hostcclStreamSynchronize(stream);
  int n_ranks = 0;
  ncclCommCount(comm, &n_ranks);
  const auto right = [&](float value) { return value == static_cast<float>(n_ranks); };
  if (result == ncclSuccess && !std::all_of(data.begin(), data.end(), right)) return Fail("wrong sum");
  return CodeOf(result, "all-reduce");
}

// Returns after 0.1 s; the process is killed 0.2 s later. If the machine stalls in between, the other ranks
// see the death earlier. They then end with the same error for another reason.
void ComeLateAndDie() {
  constexpr std::chrono::milliseconds kLate{100};
  std::this_thread::sleep_for(kLate);
  std::thread([kLate] {
    std::this_thread::sleep_for(2 * kLate);
    ::raise(SIGKILL);
  }).detach();
}

int Live(int rank, int n_ranks, const ncclUniqueId& id, size_t count, bool dies) {
  ncclComm_t comm = nullptr;
  ncclComm_t part = nullptr;
  cudaStream_t stream = nullptr;
  if (const int code = CodeOf(ncclCommInitRank(&comm, n_ranks, id, rank), "init")) return code;
  if (hostcclStreamCreate(&stream) != ncclSuccess) return Fail("stream");
  if (dies) ComeLateAndDie();
  for (int call = 0; call < 5; ++call) {
    if (const int code = Sum(comm, stream, count)) return code;
  }
  if (const int code = CodeOf(ncclCommSplit(comm, 0, -rank, &part, nullptr), "split")) return code;
  if (const int code = Sum(part, stream, 70'000)) return code;
  if (const int code = CodeOf(ncclCommFinalize(comm), "finalize")) return code;
  hostcclStreamDestroy(stream);
  if (const int code = CodeOf(ncclCommDestroy(part), "destroy")) return code;
  return CodeOf(ncclCommDestroy(comm), "destroy");
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
  } else if (::close(std::atoi(argv[4])) != 0 || ::read(std::atoi(argv[3]), &id, sizeof(id)) != sizeof(id)) {
    return std::string(argv[5]) == "life" ? 3 : Fail("read");
  }
  const std::string behaviour = argv[5];
  if (behaviour == "life") return Live(rank, n_ranks, id, 70'000, false);
  if (behaviour == "short_life") return Live(rank, n_ranks, id, 20'000, rank == 0);
  if (behaviour == "opposite") return RunOpposite(rank, n_ranks, id);
  return Run(rank, n_ranks, id, behaviour, std::atoi(argv[3]));
}
