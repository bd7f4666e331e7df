// SPDX-License-Identifier: Apache-2.0
// Issues calls on buffers or streams that NCCL treats specially: captured streams, registered buffers and
// windows.
#include "tests/real_nccl/cuda_standin/cuda_standin.h"
#include "tests/real_nccl/driver/nccl_memory.h"
#include "tests/real_nccl/driver/programs.h"

namespace real_nccl_driver {
namespace {

void IssueOn(Rank& rank, const Buffers& buffers, size_t bytes, ncclComm_t communicator) {
  const size_t count = bytes / sizeof(float), share = count / static_cast<size_t>(rank.world().ranks());
  rank.Call("AllReduce", bytes, [&] {
    return ncclAllReduce(buffers.send, buffers.receive, count, ncclFloat, ncclSum, communicator, nullptr);
  });
  rank.Call("AllGather", bytes, [&] {
    return ncclAllGather(buffers.send, buffers.receive, share, ncclFloat, communicator, nullptr);
  });
  rank.Call("ReduceScatter", bytes, [&] {
    return ncclReduceScatter(buffers.send, buffers.receive, share, ncclFloat, ncclSum, communicator, nullptr);
  });
}

}  // namespace

void RunCapture(Rank& rank) {
  const ncclComm_t communicator = rank.Join("world");
  for (const size_t bytes : rank.world().bytes) {
    for (const int captured : {0, 1, 0}) {
      cuda_standin_capture(captured);
      IssueAll(rank, communicator, rank.world().ranks(), bytes);
    }
  }
  rank.Destroy(communicator);
}

void RunRegistered(Rank& rank) {
  const ncclComm_t communicator = rank.Join("world");
  for (const size_t bytes : rank.world().bytes) {
    IssueOn(rank, rank.BuffersOf(bytes), bytes, communicator);
    const NcclMemory memory(rank, bytes);
    void* handle = nullptr;
    Demand(ncclCommRegister(communicator, memory.all(), memory.bytes(), &handle), rank.rank(),
           "CommRegister");
    IssueOn(rank, memory.buffers(), bytes, communicator);
    Demand(ncclCommDeregister(communicator, handle), rank.rank(), "CommDeregister");
  }
  rank.Destroy(communicator);
}

void RunWindows(Rank& rank) {
  const ncclComm_t communicator = rank.Join("world");
  for (const size_t bytes : rank.world().bytes) {
    const NcclMemory memory(rank, bytes);
    ncclWindow_t window = nullptr;
    Demand(
        ncclCommWindowRegister(communicator, memory.all(), memory.bytes(), &window, NCCL_WIN_COLL_SYMMETRIC),
        rank.rank(), "CommWindowRegister");
    IssueOn(rank, memory.buffers(), bytes, communicator);
    Demand(ncclCommWindowDeregister(communicator, window), rank.rank(), "CommWindowDeregister");
    IssueOn(rank, rank.BuffersOf(bytes), bytes, communicator);
  }
  rank.Destroy(communicator);
}

}  // namespace real_nccl_driver
