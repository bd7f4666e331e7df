// SPDX-License-Identifier: Apache-2.0
// Calls NCCL in the order in which real programs do: nccl-tests' *_perf programs, and PyTorch's
// ProcessGroupNCCL under DistributedDataParallel.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/real_nccl/driver/programs.h"

namespace real_nccl_driver {
namespace {

// --- nccl-tests ---

constexpr int kWarmUps = 1, kIterations = 5;

using TestCall = ncclResult_t (*)(const Buffers&, size_t count, int ranks, ncclComm_t);

// Returns the elements of one rank's share. nccl-tests states the size of the larger buffer and rounds each
// share down to 16 bytes (4 floats).
size_t ShareOf(size_t count, int ranks) {
  return count / static_cast<size_t>(ranks) / 4 * 4;
}

ncclResult_t TestAllReduce(const Buffers& b, size_t count, int, ncclComm_t communicator) {
  return ncclAllReduce(b.send, b.receive, count, ncclFloat, ncclSum, communicator, nullptr);
}
ncclResult_t TestAllGather(const Buffers& b, size_t count, int ranks, ncclComm_t communicator) {
  return ncclAllGather(b.send, b.receive, ShareOf(count, ranks), ncclFloat, communicator, nullptr);
}
ncclResult_t TestReduceScatter(const Buffers& b, size_t count, int ranks, ncclComm_t communicator) {
  return ncclReduceScatter(b.send, b.receive, ShareOf(count, ranks), ncclFloat, ncclSum, communicator,
                           nullptr);
}
ncclResult_t TestBroadcast(const Buffers& b, size_t count, int, ncclComm_t communicator) {
  return ncclBroadcast(b.send, b.receive, count, ncclFloat, 0, communicator, nullptr);
}
ncclResult_t TestReduce(const Buffers& b, size_t count, int, ncclComm_t communicator) {
  return ncclReduce(b.send, b.receive, count, ncclFloat, ncclSum, 0, communicator, nullptr);
}

struct Test {
  const char* name;
  TestCall call;
};
constexpr Test kTests[] = {{"AllReduce", TestAllReduce},
                           {"AllGather", TestAllGather},
                           {"ReduceScatter", TestReduceScatter},
                           {"Broadcast", TestBroadcast},
                           {"Reduce", TestReduce}};

// Issues the calls of one size, each in a group of its own: first out of place, then in place.
void RunSize(Rank& rank, const Test& test, size_t bytes, ncclComm_t communicator) {
  const Buffers apart = rank.BuffersOf(bytes);
  for (const Buffers& buffers : {apart, Buffers{apart.receive, apart.receive}}) {
    for (int call = 0; call < kWarmUps + kIterations; ++call) {
      rank.Call(test.name, bytes, [&] {
        ncclGroupStart();
        test.call(buffers, bytes / sizeof(float), rank.world().ranks(), communicator);
        return ncclGroupEnd();
      });
    }
  }
}

// --- PyTorch ---

constexpr size_t kBucketBytes = 25 << 20;  // bytes; DistributedDataParallel's default
constexpr int kSteps = 3;

// Returns the communicator of this rank and `peer`. PyTorch creates it at the first send between the two
// ranks. Its id is stored under the pair's name.
ncclComm_t PairWith(const Rank& rank, int peer) {
  const int low = std::min(rank.rank(), peer), high = std::max(rank.rank(), peer);
  const std::string name = std::to_string(low) + ":" + std::to_string(high);
  const ncclUniqueId id = IdOf(rank.world(), name, rank.rank() == low, rank.rank());
  ncclComm_t pair = nullptr;
  Demand(ncclCommInitRank(&pair, 2, id, rank.rank() == low ? 0 : 1), rank.rank(), "CommInitRank of a pair");
  return pair;
}

void SendToNeighbour(Rank& rank, ncclComm_t pair) {
  const bool low = rank.rank() % 2 == 0;
  const Buffers buffers = rank.BuffersOf(1 << 20);
  rank.Call(low ? "Send" : "Recv", 1 << 20, [&] {
    return low ? ncclSend(buffers.send, 1 << 20, ncclChar, 1, pair, nullptr)
               : ncclRecv(buffers.receive, 1 << 20, ncclChar, 0, pair, nullptr);
  });
}

// Broadcasts the parameters from rank 0 in one coalesced group.
void BroadcastParameters(Rank& rank, ncclComm_t communicator) {
  const Buffers buffers = rank.BuffersOf(kBucketBytes);
  rank.Call("BroadcastCoalesced", kBucketBytes, [&] {
    ncclGroupStart();
    for (const size_t bytes : {kBucketBytes, size_t{4096}, size_t{1} << 20})
      ncclBroadcast(buffers.send, buffers.send, bytes, ncclChar, 0, communicator, nullptr);
    return ncclGroupEnd();
  });
}

// Makes the calls of one training step. Gradient buckets are averaged in backward order. Parameters are then
// gathered within the node, and a flag is reduced over all ranks.
void RunStep(Rank& rank, ncclComm_t communicator, ncclComm_t shards) {
  const Buffers buffers = rank.BuffersOf(kBucketBytes);
  for (const size_t bytes : rank.world().bytes) {
    const size_t count = std::min(bytes, kBucketBytes) / sizeof(float);
    rank.Call("AllReduce", count * sizeof(float), [&] {
      return ncclAllReduce(buffers.send, buffers.send, count, ncclFloat, ncclAvg, communicator, nullptr);
    });
  }
  rank.Call("AllGather", kBucketBytes, [&] {
    return ncclAllGather(
        buffers.send, buffers.receive,
        kBucketBytes / sizeof(float) / static_cast<size_t>(rank.world().ranks_per_node()) / 2, ncclBfloat16,
        shards, nullptr);
  });
  rank.Call("AllReduce", sizeof(float), [&] {
    return ncclAllReduce(buffers.send, buffers.send, 1, ncclFloat, ncclMax, communicator, nullptr);
  });
}

}  // namespace

void RunNcclTests(Rank& rank) {
  const ncclComm_t communicator = rank.Join("world");
  for (const Test& test : kTests) {
    for (const size_t bytes : rank.world().bytes) RunSize(rank, test, bytes, communicator);
  }
  rank.Destroy(communicator);
}

void RunProcessGroup(Rank& rank) {
  // The default communicator is made at once, as by init_process_group(device_id=...).
  const ncclComm_t communicator = rank.Join("default");
  // Each node has a subgroup, as made by new_group.
  ncclComm_t shards = nullptr;
  Demand(ncclCommSplit(communicator, rank.node(), rank.rank(), &shards, nullptr), rank.rank(), "CommSplit");
  BroadcastParameters(rank, communicator);
  ncclComm_t pair = nullptr;
  const int neighbour = rank.rank() ^ 1;
  for (int step = 0; step < kSteps; ++step) {
    RunStep(rank, communicator, shards);
    if (neighbour >= rank.world().ranks()) continue;
    if (pair == nullptr) pair = PairWith(rank, neighbour);
    SendToNeighbour(rank, pair);
  }
  // Does what destroy_process_group does after a time-out: the watchdog thread aborts all communicators.
  std::thread watchdog([&] {
    for (const ncclComm_t one : {pair, shards, communicator}) {
      if (one != nullptr) Demand(ncclCommAbort(one), rank.rank(), "CommAbort");
    }
  });
  watchdog.join();
}

}  // namespace real_nccl_driver
