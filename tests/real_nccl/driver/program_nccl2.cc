// SPDX-License-Identifier: Apache-2.0
// Calls NCCL in the order in which PyTorch's backend nccl2 does. This backend came from torchcomms, and it is
// what "nccl" means from PyTorch 2.15 on (pytorch/pytorch#192281). Its source is
// torch/csrc/distributed/c10d/nccl2. It differs from ProcessGroupNCCL (RunProcessGroup) in these points:
//  * A communicator gets a configuration with its name. A subgroup's communicator is split from the default
//    one.
//  * Two ranks send to each other on the group's communicator, with an NCCL group around each call.
//  * all_gather with a list is one NCCL group of broadcasts. reduce_scatter with a list is one NCCL group of
//    reductions. Each call of such a group has a root of its own.
//  * Coalesced collectives are issued one by one.
//  * Asynchronous calls go to a stream of the group. Other calls go to the program's current stream.
//  * The allocator's memory is registered with every communicator. Windows are registered in addition.
//  * One lock of the process is held in each function of NCCL. A watchdog thread of each group polls its
//    communicator's state.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/real_nccl/driver/nccl_memory.h"
#include "tests/real_nccl/driver/programs.h"

extern "C" {
// These functions come from the stand-in, which is preloaded.
int cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) __attribute__((weak));
int cudaStreamDestroy(cudaStream_t stream) __attribute__((weak));
}

namespace real_nccl_driver {
namespace {

constexpr size_t kBucketBytes = 25 << 20;  // bytes; DistributedDataParallel's default
constexpr int kSteps = 3;
constexpr int kNoColour = -1;  // NCCL_SPLIT_NOCOLOR
constexpr unsigned kNonBlocking = 1;
constexpr NewerFunction kConfigured = Newer("AllReduceConfig");
// nccl2 makes windows only where the release has functions for them on the host's side.
constexpr NewerFunction kWindows = Newer("WinGetUserPtr");

// PyTorch's watchdog polls once a second. A shorter interval makes it poll between calls here.
constexpr std::chrono::milliseconds kWatchInterval{5};

// One group of a rank. It owns its communicator, its stream, its watchdog thread and its registrations.
class Group {
 public:
  Group(Rank& rank, std::mutex& api, ncclComm_t communicator) : rank_(rank), api_(api), comm_(communicator) {
    Demand(Locked(ncclCommUserRank, comm_, &own_rank_), rank.rank(), "CommUserRank");
    Demand(Locked(ncclCommCount, comm_, &ranks_), rank.rank(), "CommCount");
    cudaStreamCreateWithFlags(&stream_, kNonBlocking);
    watchdog_ = std::thread([this] { Watch(); });
  }
  // Does what destroy_process_group does: no communicator is finalised or aborted.
  ~Group() {
    {
      const std::lock_guard lock(waiting_);
      over_ = true;
    }
    ended_.notify_all();
    watchdog_.join();
    while (!registered_.empty()) Deregister();
    Demand(Locked(ncclCommDestroy, comm_), rank_.rank(), "CommDestroy");
    cudaStreamDestroy(stream_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  ncclComm_t comm() const { return comm_; }
  cudaStream_t stream() const { return stream_; }
  int ranks() const { return ranks_; }
  int own_rank() const { return own_rank_; }
  Rank& rank() const { return rank_; }

  // Calls one function of NCCL under the process's lock. The lock is not held from the start of an NCCL group
  // to its end.
  template <typename Function, typename... Arguments>
  ncclResult_t Locked(Function function, Arguments... arguments) {
    const std::lock_guard lock(api_);
    return function(arguments...);
  }
  // Issues a call outside NCCL groups. The communicator and its stream are appended as the last arguments.
  template <typename Function, typename... Arguments>
  void Issue(const char* name, size_t bytes, Function function, Arguments... arguments) {
    rank_.Call(name, bytes, [&] { return Locked(function, arguments..., comm_, stream_); });
  }
  // Issues the calls that `issue` makes in one NCCL group.
  template <typename Calls>
  void IssueGrouped(const char* name, size_t bytes, Calls&& issue) {
    rank_.Call(name, bytes, [&] {
      Locked(ncclGroupStart);
      issue();
      return Locked(ncclGroupEnd);
    });
  }

  void Register(void* memory, size_t bytes) {
    void* handle = nullptr;
    Demand(Locked(ncclCommRegister, comm_, memory, bytes, &handle), rank_.rank(), "CommRegister");
    registered_.push_back(handle);
  }
  // Ends the last registration. A release that registers nothing has returned a null handle.
  void Deregister() {
    if (registered_.back() != nullptr)
      Demand(Locked(ncclCommDeregister, comm_, registered_.back()), rank_.rank(), "CommDeregister");
    registered_.pop_back();
  }

 private:
  void Watch() {
    std::unique_lock lock(waiting_);
    while (!ended_.wait_for(lock, kWatchInterval, [this] { return over_; })) {
      ncclResult_t state = ncclSuccess;
      Demand(Locked(ncclCommGetAsyncError, comm_, &state), rank_.rank(), "CommGetAsyncError");
      Demand(state, rank_.rank(), "a call on the communicator");
    }
  }

  Rank& rank_;
  std::mutex& api_;
  ncclComm_t comm_;
  cudaStream_t stream_ = nullptr;
  int own_rank_ = 0;
  int ranks_ = 0;
  std::vector<void*> registered_;
  std::mutex waiting_;  // guards over_
  std::condition_variable ended_;
  bool over_ = false;
  std::thread watchdog_;
};

ncclConfig_t Named(const World& world, const char* name) {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  if (world.version >= 22700) config.commName = name;
  return config;
}

// Does what new_group does for the ranks of a node. Every rank of the parent takes part in one split for each
// node, and only that node's ranks get a communicator. The colour is the smallest rank.
ncclComm_t SplitNode(Group& parent) {
  Rank& rank = parent.rank();
  const int per_node = rank.world().ranks_per_node();
  ncclComm_t own = nullptr;
  for (int node = 0; node < rank.world().nodes(); ++node) {
    const bool member = node == rank.node();
    ncclConfig_t config = Named(rank.world(), "shards");
    ncclComm_t child = nullptr;
    Demand(parent.Locked(ncclCommSplit, parent.comm(), member ? node * per_node : kNoColour,
                         member ? rank.local_rank() : rank.rank(), &child, &config),
           rank.rank(), "CommSplit");
    if (member) own = child;
  }
  return own;
}

void Barrier(Group& group) {
  void* const buffer = group.rank().BuffersOf(kBucketBytes).send;
  group.Issue("AllReduce", sizeof(float), ncclAllReduce, buffer, buffer, size_t{1}, ncclFloat, ncclSum);
}

// Makes the calls of DistributedDataParallel: gradient buckets in place, then a flag on the program's own
// stream.
void ReduceGradients(Group& group) {
  Rank& rank = group.rank();
  void* const buffer = rank.BuffersOf(kBucketBytes).send;
  for (const size_t bytes : rank.world().bytes) {
    const size_t count = std::min(bytes, kBucketBytes) / sizeof(float);
    group.Issue("AllReduce", count * sizeof(float), ncclAllReduce, buffer, buffer, count, ncclFloat, ncclSum);
  }
  rank.Call("AllReduce", sizeof(float), [&] {
    return group.Locked(ncclAllReduce, buffer, buffer, size_t{1}, ncclFloat, ncclMax, group.comm(), nullptr);
  });
}

// Makes the calls of FSDP2: parameters are gathered into one tensor, and gradients are reduce-scattered with
// a factor. Each reduce-scatter creates and destroys its own reduction operation. Coalesced calls would be
// the same calls, one after the other.
void ShardUnit(Group& group) {
  Rank& rank = group.rank();
  const Buffers buffers = rank.BuffersOf(kBucketBytes);
  const size_t share = kBucketBytes / 4 / static_cast<size_t>(group.ranks());
  group.Issue("AllGather", kBucketBytes / 2, ncclAllGather, buffers.send, buffers.receive, share,
              ncclBfloat16);
  float factor = 1.0f / static_cast<float>(group.ranks());
  ncclRedOp_t operation = ncclSum;
  Demand(group.Locked(ncclRedOpCreatePreMulSum, &operation, static_cast<void*>(&factor), ncclFloat,
                      ncclScalarHostImmediate, group.comm()),
         rank.rank(), "RedOpCreatePreMulSum");
  group.Issue("ReduceScatter", kBucketBytes, ncclReduceScatter, buffers.send, buffers.receive, share,
              ncclFloat, operation);
  Demand(group.Locked(ncclRedOpDestroy, operation, group.comm()), rank.rank(), "RedOpDestroy");
}

// Makes the calls of all_gather, reduce_scatter and scatter with lists of tensors. The tensors of a list lie
// one after the other.
void ExchangeLists(Group& group, size_t bytes) {
  const Buffers buffers = group.rank().BuffersOf(kBucketBytes);
  const auto ranks = static_cast<size_t>(group.ranks());
  const size_t each = std::min(bytes, kBucketBytes) / ranks;
  const auto part = [&](void* list, int rank) {
    return static_cast<char*>(list) + static_cast<size_t>(rank) * each;
  };
  group.IssueGrouped("Broadcasts", ranks * each, [&] {
    for (int root = 0; root < group.ranks(); ++root)
      group.Locked(ncclBroadcast, buffers.send, part(buffers.receive, root), each, ncclChar, root,
                   group.comm(), group.stream());
  });
  group.IssueGrouped("Reductions", ranks * each, [&] {
    for (int root = 0; root < group.ranks(); ++root)
      group.Locked(ncclReduce, part(buffers.send, root), root == group.own_rank() ? buffers.receive : nullptr,
                   each, ncclUint8, ncclMax, root, group.comm(), group.stream());
  });
  if (group.own_rank() != 0) {  // a single receive has no NCCL group around it
    group.Issue("Recv", each, ncclRecv, buffers.receive, each, ncclChar, 0);
    return;
  }
  group.IssueGrouped("Sends", ranks * each, [&] {
    for (int peer = 1; peer < group.ranks(); ++peer)
      group.Locked(ncclSend, part(buffers.send, peer), each, ncclChar, peer, group.comm(), group.stream());
  });
}

// Exchanges data between all ranks. From 2.28 on, equal parts are exchanged by one function. Older releases
// and unequal parts need a group of sends and receives.
void ExchangeAll(Group& group, bool alike) {
  Rank& rank = group.rank();
  const Buffers buffers = rank.BuffersOf(kBucketBytes);
  const auto ranks = static_cast<size_t>(group.ranks());
  const size_t each = kBucketBytes / 16 / ranks;
  if (alike && rank.world().Has(Newer("AlltoAll"))) {
    group.Issue("AlltoAll", ranks * each, ncclAlltoAll, buffers.send, buffers.receive, each, ncclChar);
    return;
  }
  group.IssueGrouped("SendRecv", ranks * each, [&] {
    for (int peer = 0; peer < group.ranks(); ++peer) {
      const size_t bytes = alike ? each : each / static_cast<size_t>(1 + (peer + group.own_rank()) % 2);
      group.Locked(ncclSend, buffers.send, bytes, ncclChar, peer, group.comm(), group.stream());
      group.Locked(ncclRecv, buffers.receive, bytes, ncclChar, peer, group.comm(), group.stream());
    }
  });
}

// Exchanges data between neighbours of a pipeline, on the group's own communicator.
void SendToNeighbour(Group& group) {
  constexpr size_t kBytes = 1 << 20;
  const int neighbour = group.own_rank() ^ 1;
  if (neighbour >= group.ranks()) return;
  const Buffers buffers = group.rank().BuffersOf(kBucketBytes);
  const bool sends = group.own_rank() % 2 == 0;
  group.IssueGrouped(sends ? "Send" : "Recv", kBytes, [&] {
    if (sends)
      group.Locked(ncclSend, buffers.send, kBytes, ncclChar, neighbour, group.comm(), group.stream());
    else
      group.Locked(ncclRecv, buffers.receive, kBytes, ncclChar, neighbour, group.comm(), group.stream());
  });
}

// Issues calls with a configuration of their own, never within an NCCL group (pytorch/pytorch#197602).
void IssueConfigured(Group& group) {
  Rank& rank = group.rank();
  const Buffers buffers = rank.BuffersOf(kBucketBytes);
  ncclCollConfig_t config = DYNAMICCL_NCCL_COLL_CONFIG_INITIALIZER;
  config.maxCTAs = 2;
  const size_t count = kBucketBytes / sizeof(float), share = count / static_cast<size_t>(group.ranks());
  const auto issue = [&](const char* name, auto function, auto... arguments) {
    rank.CallNewer(kConfigured, name, kBucketBytes, [&] {
      return group.Locked(function, buffers.send, buffers.receive, arguments..., group.comm(), group.stream(),
                          &config);
    });
  };
  issue("AllReduceConfig", ncclAllReduceConfig, count, ncclFloat, ncclSum);
  issue("AllGatherConfig", ncclAllGatherConfig, share, ncclFloat);
  issue("ReduceScatterConfig", ncclReduceScatterConfig, share, ncclFloat, ncclSum);
}

// Makes a window of a tensor in a pool of NCCL's memory. The pool's segment is registered with all
// communicators. The ranks then tell each other where the tensor lies, and meet in barriers before the window
// ends.
void UseWindow(Group& world, Group& shards, size_t bytes) {
  Rank& rank = world.rank();
  const NcclMemory segment(rank, bytes);
  for (Group* group : {&world, &shards}) group->Register(segment.all(), segment.bytes());
  ncclWindow_t window = nullptr;
  Demand(world.Locked(ncclCommWindowRegister, world.comm(), segment.all(), segment.bytes(), &window,
                      NCCL_WIN_COLL_SYMMETRIC),
         rank.rank(), "CommWindowRegister");
  const Buffers buffers = rank.BuffersOf(kBucketBytes);
  rank.Call("AllGather", 24 * static_cast<size_t>(world.ranks()), [&] {
    return world.Locked(ncclAllGather, buffers.send, buffers.receive, size_t{3}, ncclInt64, world.comm(),
                        nullptr);
  });
  void* const tensor = segment.buffers().send;
  world.Issue("AllReduce", bytes, ncclAllReduce, tensor, tensor, bytes / sizeof(float), ncclFloat, ncclSum);
  Barrier(world);
  Barrier(world);
  Demand(world.Locked(ncclCommWindowDeregister, world.comm(), window), rank.rank(), "CommWindowDeregister");
  for (Group* group : {&world, &shards}) group->Deregister();
}

void RunStep(Group& world, Group& shards) {
  ReduceGradients(world);
  ShardUnit(shards);
  ExchangeLists(shards, world.rank().world().bytes.front());
  for (const bool alike : {true, false}) ExchangeAll(shards, alike);
  SendToNeighbour(world);
}

}  // namespace

void RunNccl2(Rank& rank) {
  std::mutex api;
  // The allocator holds this memory before the first group exists.
  const Buffers segment = rank.BuffersOf(kBucketBytes);
  ncclConfig_t config = Named(rank.world(), "default_pg");
  Group world(rank, api, rank.Join("default_pg", &config));
  world.Register(segment.send, kBucketBytes);
  Group shards(rank, api, SplitNode(world));
  shards.Register(segment.send, kBucketBytes);
  world.Issue("Bcast", kBucketBytes, ncclBcast, segment.send, kBucketBytes, ncclChar, 0);
  for (int step = 0; step < kSteps; ++step) RunStep(world, shards);
  IssueConfigured(world);
  if (rank.world().Has(kWindows)) UseWindow(world, shards, rank.world().bytes.back());
  Barrier(world);
}

}  // namespace real_nccl_driver
