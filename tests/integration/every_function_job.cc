// SPDX-License-Identifier: Apache-2.0
// Calls every function that the preloaded object interposes. The two ranks are threads. For each call, each
// rank prints one line about what reached the library behind the object (call_witness.h):
//   <rank> <function> reached <names> arguments same|CHANGED result same|CHANGED
//   every_function_job <any word>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"
#include "tests/integration/call_witness.h"

namespace {

thread_local int t_rank = 0;

// Makes one call through the public name, and compares it with what the witness saw.
template <typename... Parameters>
ncclResult_t Call(const char* name, ncclResult_t (*function)(Parameters...),
                  std::type_identity_t<Parameters>... arguments) {
  WitnessForget();
  const std::vector<unsigned char> given = BytesOf(arguments...);
  const ncclResult_t result = function(arguments...);
  std::string reached;
  for (int i = 0; i < WitnessCalls(); ++i) reached += (i > 0 ? "," : "") + std::string(WitnessName(i));
  size_t bytes = 0;
  const unsigned char* seen = WitnessCalls() > 0 ? WitnessArguments(0, &bytes) : nullptr;
  const bool same = bytes == given.size() && (bytes == 0 || std::memcmp(seen, given.data(), bytes) == 0);
  const bool same_result = WitnessCalls() > 0 && WitnessResult(0) == result;
  std::printf("%d %s reached %s arguments %s result %s (%d)\n", t_rank, name, reached.c_str(),
              same ? "same" : "CHANGED", same_result ? "same" : "CHANGED", result);
  return result;
}
#define CALL(name, ...) Call(#name, &nccl##name __VA_OPT__(, ) __VA_ARGS__)
#define REQUIRE_CALL(name, ...) \
  if (CALL(name __VA_OPT__(, ) __VA_ARGS__) != ncclSuccess) std::_Exit(4)

// Passes a value from one rank to the others.
class Post {
 public:
  void Put(const ncclUniqueId& id) {
    const std::lock_guard lock(mutex_);
    id_ = id;
    there_ = true;
    changed_.notify_all();
  }
  ncclUniqueId Get() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return there_; });
    return id_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  ncclUniqueId id_{};
  bool there_ = false;
};

constexpr int kRanks = 2;
constexpr size_t kCount = 24;
Post g_first, g_configured, g_scalable, g_grow;

struct Buffers {
  std::array<float, kCount*(kRanks + 1)> send{};
  std::array<float, kCount*(kRanks + 1)> receive{};
};

void MoveData(ncclComm_t comm, cudaStream_t stream) {
  Buffers buffers;
  float* const send = buffers.send.data();
  float* const receive = buffers.receive.data();
  REQUIRE_CALL(AllReduce, send, receive, kCount, ncclFloat32, ncclSum, comm, stream);
  REQUIRE_CALL(AllGather, send, receive, kCount, ncclFloat32, comm, stream);
  REQUIRE_CALL(ReduceScatter, send, receive, kCount, ncclFloat32, ncclMax, comm, stream);
  REQUIRE_CALL(Broadcast, send, receive, kCount, ncclFloat32, 1, comm, stream);
  REQUIRE_CALL(Bcast, receive, kCount, ncclFloat32, 1, comm, stream);
  REQUIRE_CALL(Reduce, send, receive, kCount, ncclFloat32, ncclProd, 1, comm, stream);
  REQUIRE_CALL(GroupStart);
  REQUIRE_CALL(Send, send, kCount, ncclFloat32, 1 - t_rank, comm, stream);
  REQUIRE_CALL(Recv, receive, kCount, ncclFloat32, 1 - t_rank, comm, stream);
  REQUIRE_CALL(GroupEnd);
  REQUIRE_CALL(AlltoAll, send, receive, kCount, ncclFloat32, comm, stream);
  REQUIRE_CALL(Gather, send, receive, kCount, ncclFloat32, 1, comm, stream);
  REQUIRE_CALL(Scatter, send, receive, kCount, ncclFloat32, 1, comm, stream);
  if (hostcclStreamSynchronize(stream) != ncclSuccess) std::_Exit(4);
}

void MoveDataAsConfigured(ncclComm_t comm, cudaStream_t stream) {
  Buffers buffers;
  float* const send = buffers.send.data();
  float* const receive = buffers.receive.data();
  ncclCollConfig_t config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  config.maxCTAs = 1;
  REQUIRE_CALL(AllReduceConfig, send, receive, kCount, ncclFloat32, ncclSum, comm, stream, &config);
  REQUIRE_CALL(AllGatherConfig, send, receive, kCount, ncclFloat32, comm, stream, nullptr);
  REQUIRE_CALL(ReduceScatterConfig, send, receive, kCount, ncclFloat32, ncclSum, comm, stream, &config);
  REQUIRE_CALL(BroadcastConfig, send, receive, kCount, ncclFloat32, 0, comm, stream, &config);
  REQUIRE_CALL(ReduceConfig, send, receive, kCount, ncclFloat32, ncclSum, 0, comm, stream, &config);
  REQUIRE_CALL(AlltoAllConfig, send, receive, kCount, ncclFloat32, comm, stream, nullptr);
  REQUIRE_CALL(GatherConfig, send, receive, kCount, ncclFloat32, 0, comm, stream, nullptr);
  REQUIRE_CALL(ScatterConfig, send, receive, kCount, ncclFloat32, 0, comm, stream, nullptr);
  if (hostcclStreamSynchronize(stream) != ncclSuccess) std::_Exit(4);
}

// Makes calls that must not advance the call number, then one call that shows the number.
void MoveNothing(ncclComm_t comm, cudaStream_t stream) {
  Buffers buffers;
  float* const data = buffers.send.data();
  REQUIRE_CALL(AllReduce, data, data, 0, ncclFloat32, ncclSum, comm, stream);
  CALL(Broadcast, data, data, kCount, ncclFloat32, /*root=*/kRanks + 5, comm, stream);
  CALL(PutSignal, data, kCount, ncclFloat32, 1 - t_rank, nullptr, 0, 0, 0, 0, comm, stream);
  REQUIRE_CALL(GroupStart);
  REQUIRE_CALL(AllReduce, data, data, kCount, ncclFloat32, ncclSum, comm, stream);
  CALL(GroupSimulateEnd, nullptr);
  REQUIRE_CALL(GroupStart);
  REQUIRE_CALL(AllReduce, data, data, kCount, ncclFloat32, ncclSum, comm, stream);
  REQUIRE_CALL(GroupStart);
  REQUIRE_CALL(AllReduce, data, data, kCount, ncclFloat32, ncclSum, comm, stream);
  REQUIRE_CALL(GroupEnd);
  REQUIRE_CALL(Gather, data, buffers.receive.data(), kCount, ncclFloat32, 0, comm, stream);
  REQUIRE_CALL(GroupEnd);
  REQUIRE_CALL(AllReduce, data, data, kCount, ncclFloat32, ncclSum, comm, stream);
  if (hostcclStreamSynchronize(stream) != ncclSuccess) std::_Exit(4);
}

void UseOnce(ncclComm_t comm, cudaStream_t stream, size_t count) {
  Buffers buffers;
  REQUIRE_CALL(AllReduce, buffers.send.data(), buffers.receive.data(), count, ncclFloat32, ncclSum, comm,
               stream);
  if (hostcclStreamSynchronize(stream) != ncclSuccess) std::_Exit(4);
}

void Children(ncclComm_t world, cudaStream_t stream) {
  ncclComm_t split = nullptr;
  REQUIRE_CALL(CommSplit, world, 0, t_rank, &split, nullptr);
  UseOnce(split, stream, 2);
  REQUIRE_CALL(CommDestroy, split);
  if (t_rank == 0) {
    int excluded[] = {1};
    ncclComm_t alone = nullptr;
    REQUIRE_CALL(CommShrink, world, excluded, 1, &alone, nullptr, NCCL_SHRINK_DEFAULT);
    UseOnce(alone, stream, 3);
    REQUIRE_CALL(CommAbort, alone);
  }
  ncclUniqueId id{};
  if (t_rank == 0) {
    REQUIRE_CALL(CommGetUniqueId, world, &id);
    g_grow.Put(id);
  }
  ncclComm_t grown = nullptr;
  REQUIRE_CALL(CommGrow, world, kRanks + 1, t_rank == 0 ? &id : nullptr, -1, &grown, nullptr);
  UseOnce(grown, stream, 4);
  REQUIRE_CALL(CommDestroy, grown);
}

void InitOtherwise(cudaStream_t stream) {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm = nullptr;
  ncclUniqueId id{};
  if (t_rank == 0 && ncclGetUniqueId(&id) == ncclSuccess) g_configured.Put(id);
  REQUIRE_CALL(CommInitRankConfig, &comm, kRanks, g_configured.Get(), t_rank, &config);
  UseOnce(comm, stream, 5);
  REQUIRE_CALL(CommDestroy, comm);
  if (t_rank == 0 && ncclGetUniqueId(&id) == ncclSuccess) g_scalable.Put(id);
  id = g_scalable.Get();
  REQUIRE_CALL(CommInitRankScalable, &comm, kRanks, t_rank, 1, &id, &config);
  UseOnce(comm, stream, 6);
  REQUIRE_CALL(CommRevoke, comm, NCCL_REVOKE_DEFAULT);
  REQUIRE_CALL(CommDestroy, comm);
}

void RunRank(int rank) {
  t_rank = rank;
  ncclUniqueId id{};
  if (rank == 0) {
    REQUIRE_CALL(GetUniqueId, &id);
    g_first.Put(id);
  }
  ncclComm_t world = nullptr;
  cudaStream_t stream = nullptr;
  if (hostcclStreamCreate(&stream) != ncclSuccess) std::_Exit(4);
  REQUIRE_CALL(CommInitRank, &world, kRanks, g_first.Get(), rank);
  MoveData(world, stream);
  MoveDataAsConfigured(world, stream);
  MoveNothing(world, stream);
  Children(world, stream);
  REQUIRE_CALL(CommDestroy, world);
  InitOtherwise(stream);
  if (hostcclStreamDestroy(stream) != ncclSuccess) std::_Exit(4);
}

// Runs the third rank, which joins when the communicator grows.
void RunNewRank() {
  t_rank = kRanks;
  ncclComm_t grown = nullptr;
  cudaStream_t stream = nullptr;
  if (hostcclStreamCreate(&stream) != ncclSuccess) std::_Exit(4);
  const ncclUniqueId id = g_grow.Get();
  REQUIRE_CALL(CommGrow, nullptr, kRanks + 1, &id, kRanks, &grown, nullptr);
  UseOnce(grown, stream, 4);
  REQUIRE_CALL(CommDestroy, grown);
  if (hostcclStreamDestroy(stream) != ncclSuccess) std::_Exit(4);
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(RunRank, rank);
  threads.emplace_back(RunNewRank);
  for (std::thread& thread : threads) thread.join();
  ncclComm_t alone = nullptr;
  REQUIRE_CALL(CommInitAll, &alone, 1, nullptr);
  REQUIRE_CALL(CommDestroy, alone);
  return 0;
}
