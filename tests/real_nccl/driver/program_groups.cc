// SPDX-License-Identifier: Apache-2.0
// Issues NCCL groups. NCCL asks a tuner once for calls that it merges, so a group of three calls may be one
// question.
#include "tests/real_nccl/driver/programs.h"

namespace real_nccl_driver {
namespace {

constexpr NewerFunction kSimulateEnd = Newer("GroupSimulateEnd");

ncclResult_t AllReduce(const Buffers& buffers, size_t bytes, ncclDataType_t type, ncclRedOp_t operation,
                       ncclComm_t communicator) {
  return ncclAllReduce(buffers.send, buffers.receive, bytes / sizeof(float), type, operation, communicator,
                       nullptr);
}

ncclResult_t SumFloats(const Buffers& buffers, size_t bytes, ncclComm_t communicator) {
  return AllReduce(buffers, bytes, ncclFloat, ncclSum, communicator);
}

// Issues equal operations of several sizes in one group. NCCL merges some of these sizes and not the others.
ncclResult_t Merged(const Buffers& buffers, size_t bytes, ncclComm_t communicator) {
  ncclGroupStart();
  for (const size_t times : {1, 2, 4, 64}) SumFloats(buffers, bytes * times, communicator);
  return ncclGroupEnd();
}

// Issues different operations and data types in one group. NCCL makes each of them a batch of its own.
ncclResult_t Mixed(const Buffers& buffers, size_t bytes, ncclComm_t communicator, size_t ranks) {
  const size_t share = bytes / sizeof(float) / ranks + 1;
  ncclGroupStart();
  SumFloats(buffers, bytes, communicator);
  AllReduce(buffers, bytes, ncclFloat, ncclMax, communicator);
  AllReduce(buffers, bytes, ncclBfloat16, ncclAvg, communicator);
  ncclAllGather(buffers.send, buffers.receive, share, ncclFloat, communicator, nullptr);
  ncclReduceScatter(buffers.send, buffers.receive, share, ncclFloat, ncclSum, communicator, nullptr);
  return ncclGroupEnd();
}

ncclResult_t SeveralRoots(const Buffers& buffers, size_t bytes, ncclComm_t communicator, int ranks) {
  ncclGroupStart();
  for (int root = 0; root < ranks; ++root)
    ncclBroadcast(buffers.send, buffers.receive, bytes / sizeof(float), ncclFloat, root, communicator,
                  nullptr);
  return ncclGroupEnd();
}

ncclResult_t Nested(const Buffers& buffers, size_t bytes, ncclComm_t communicator) {
  ncclGroupStart();
  ncclGroupStart();
  SumFloats(buffers, bytes, communicator);
  ncclGroupEnd();
  SumFloats(buffers, 0, communicator);  // a call without work
  return ncclGroupEnd();
}

ncclResult_t Empty() {
  ncclGroupStart();
  return ncclGroupEnd();
}

ncclResult_t Simulated(const Buffers& buffers, size_t bytes, ncclComm_t communicator) {
  ncclSimInfo_t info = DYNAMICCL_NCCL_SIM_INFO_INITIALIZER;
  ncclGroupStart();
  SumFloats(buffers, bytes, communicator);
  return ncclGroupSimulateEnd(&info);
}

}  // namespace

void RunGroups(Rank& rank) {
  const ncclComm_t communicator = rank.Join("world");
  const int ranks = rank.world().ranks();
  for (const size_t bytes : rank.world().bytes) {
    const Buffers buffers = rank.BuffersOf(64 * bytes);
    rank.Call("Merged", bytes, [&] { return Merged(buffers, bytes, communicator); });
    rank.Call("Mixed", bytes,
              [&] { return Mixed(buffers, bytes, communicator, static_cast<size_t>(ranks)); });
    rank.Call("SeveralRoots", bytes, [&] { return SeveralRoots(buffers, bytes, communicator, ranks); });
    rank.Call("Nested", bytes, [&] { return Nested(buffers, bytes, communicator); });
    rank.Call("Empty", 0, Empty);
    rank.CallNewer(kSimulateEnd, "Simulated", bytes, [&] { return Simulated(buffers, bytes, communicator); });
    IssueAll(rank, communicator, ranks, bytes);
  }
  rank.Destroy(communicator);
}

}  // namespace real_nccl_driver
