// SPDX-License-Identifier: Apache-2.0
// Uses several communicators, communicators that do not block, and communicators that are aborted.
#include <chrono>
#include <thread>

#include "tests/real_nccl/driver/programs.h"

namespace real_nccl_driver {
namespace {

ncclComm_t Split(const Rank& rank, ncclComm_t parent, int colour) {
  ncclComm_t child = nullptr;
  Demand(ncclCommSplit(parent, colour, rank.rank(), &child, nullptr), rank.rank(), "CommSplit");
  return child;
}

void PassAround(Rank& rank, ncclComm_t communicator, size_t bytes) {
  const int ranks = rank.world().ranks();
  const Buffers buffers = rank.BuffersOf(bytes);
  rank.Call("SendRecv", bytes, [&] {
    ncclGroupStart();
    ncclSend(buffers.send, bytes, ncclChar, (rank.rank() + 1) % ranks, communicator, nullptr);
    ncclRecv(buffers.receive, bytes, ncclChar, (rank.rank() + ranks - 1) % ranks, communicator, nullptr);
    return ncclGroupEnd();
  });
}

// Waits until a call on a communicator that does not block is complete, and returns the call's result.
ncclResult_t Await(ncclResult_t result, ncclComm_t communicator) {
  while (result == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const ncclResult_t asked = ncclCommGetAsyncError(communicator, &result);
    if (asked != ncclSuccess) return asked;
  }
  return result;
}

ncclComm_t JoinWithoutBlocking(Rank& rank, const char* name) {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = IdOf(rank.world(), name, rank.rank() == 0, rank.rank());
  ncclComm_t communicator = nullptr;
  const ncclResult_t begun =
      ncclCommInitRankConfig(&communicator, rank.world().ranks(), id, rank.rank(), &config);
  Demand(Await(begun, communicator), rank.rank(), "CommInitRankConfig");
  return communicator;
}

}  // namespace

void RunCommunicators(Rank& rank) {
  const World& world = rank.world();
  const ncclComm_t everyone = rank.Join("world");
  const ncclComm_t again = rank.Join("again");
  const ncclComm_t node = Split(rank, everyone, rank.node());
  const ncclComm_t across = Split(rank, everyone, rank.local_rank());
  for (const size_t bytes : world.bytes) {
    IssueAll(rank, everyone, world.ranks(), bytes);
    IssueAll(rank, node, world.ranks_per_node(), bytes);
    IssueAll(rank, across, world.nodes(), bytes);
    IssueAll(rank, again, world.ranks(), bytes);
    PassAround(rank, everyone, bytes);
  }
  Demand(ncclCommFinalize(again), rank.rank(), "CommFinalize");
  for (const ncclComm_t communicator : {everyone, across, again, node}) rank.Destroy(communicator);
}

void RunNonBlocking(Rank& rank) {
  const ncclComm_t communicator = JoinWithoutBlocking(rank, "world");
  for (const size_t bytes : rank.world().bytes) {
    const Buffers buffers = rank.BuffersOf(bytes);
    rank.Call("AllReduce", bytes, [&] {
      return Await(ncclAllReduce(buffers.send, buffers.receive, bytes / sizeof(float), ncclFloat, ncclSum,
                                 communicator, nullptr),
                   communicator);
    });
    rank.Call("Group", 2 * bytes, [&] {
      ncclGroupStart();
      for (int call = 0; call < 2; ++call)
        ncclBroadcast(buffers.send, buffers.receive, bytes, ncclChar, 0, communicator, nullptr);
      return Await(ncclGroupEnd(), communicator);
    });
  }
  Demand(Await(ncclCommFinalize(communicator), communicator), rank.rank(), "CommFinalize");
  rank.Destroy(communicator);
}

void RunAbort(Rank& rank) {
  for (const char* name : {"first", "second"}) {
    const ncclComm_t communicator = rank.Join(name);
    for (const size_t bytes : rank.world().bytes) IssueAll(rank, communicator, rank.world().ranks(), bytes);
    // Each rank aborts at its own time and does not wait for the others.
    std::thread watchdog([&] { Demand(ncclCommAbort(communicator), rank.rank(), "CommAbort"); });
    watchdog.join();
  }
  const ncclComm_t communicator = rank.Join("third");
  for (const size_t bytes : rank.world().bytes) IssueAll(rank, communicator, rank.world().ranks(), bytes);
  rank.Destroy(communicator);
}

}  // namespace real_nccl_driver
