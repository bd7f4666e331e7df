// SPDX-License-Identifier: Apache-2.0
// A plain NCCL program: every collective at every size, in one fixed order, on all ranks as threads or on
// one.
//   real_nccl_driver [--rank R --id FILE] NODES RANKS_PER_NODE BYTES...
// BYTES is NCCL's total, rounded up to whole floats a rank. With --rank, this process is that rank alone, and
// the unique id goes through FILE. Exit codes: 0 all calls succeeded, 2 usage, 3 the stand-in has no hold of
// NCCL, 4 an NCCL call failed.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/nccl_abi/nccl_api.h"
#include "tests/real_nccl/cuda_standin/cuda_standin.h"

namespace {

struct World {
  int nodes = 0;
  int ranks_per_node = 0;
  int only_rank = -1;   // -1: all ranks are threads of this process
  std::string id_file;  // of only_rank's world
  std::vector<size_t> bytes;
  ncclUniqueId id = {};

  int ranks() const { return nodes * ranks_per_node; }
};

void Demand(ncclResult_t result, int rank, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "rank %d: %s: %s (%s)\n", rank, what, ncclGetErrorString(result),
               ncclGetLastError(nullptr));
  std::_Exit(4);
}

struct Buffers {
  void* send = nullptr;
  void* receive = nullptr;
};

void IssueAll(const World& world, int rank, size_t bytes, const Buffers& buffers, ncclComm_t communicator) {
  const auto ranks = static_cast<size_t>(world.ranks());
  const size_t share = (bytes / sizeof(float) + ranks - 1) / ranks;
  const size_t count = share * ranks;
  const auto [send, receive] = buffers;
  Demand(ncclAllReduce(send, receive, count, ncclFloat, ncclSum, communicator, nullptr), rank, "AllReduce");
  Demand(ncclAllGather(send, receive, share, ncclFloat, communicator, nullptr), rank, "AllGather");
  Demand(ncclReduceScatter(send, receive, share, ncclFloat, ncclSum, communicator, nullptr), rank,
         "ReduceScatter");
  Demand(ncclBroadcast(send, receive, count, ncclFloat, 0, communicator, nullptr), rank, "Broadcast");
  Demand(ncclReduce(send, receive, count, ncclFloat, ncclSum, 0, communicator, nullptr), rank, "Reduce");
}

void RunRank(const World& world, int rank) {
  cuda_standin_set_place(rank / world.ranks_per_node, rank % world.ranks_per_node);
  ncclComm_t communicator = nullptr;
  Demand(ncclCommInitRank(&communicator, world.ranks(), world.id, rank), rank, "CommInitRank");
  for (const size_t bytes : world.bytes) {
    const size_t room = bytes + sizeof(float) * static_cast<size_t>(world.ranks());
    const Buffers buffers = {cuda_standin_allocate(room), cuda_standin_allocate(room)};
    IssueAll(world, rank, bytes, buffers, communicator);
    cuda_standin_free(buffers.send);
    cuda_standin_free(buffers.receive);
  }
  Demand(ncclCommDestroy(communicator), rank, "CommDestroy");
}

bool ParseArguments(int count, char** words, World* world) {
  int word = 1;
  if (count > 5 && std::strcmp(words[1], "--rank") == 0 && std::strcmp(words[3], "--id") == 0) {
    world->only_rank = std::atoi(words[2]);
    world->id_file = words[4];
    word = 5;
  }
  if (count - word < 3) return false;
  world->nodes = std::atoi(words[word++]);
  world->ranks_per_node = std::atoi(words[word++]);
  for (; word < count; ++word) world->bytes.push_back(std::strtoull(words[word], nullptr, 10));
  return world->nodes > 0 && world->ranks_per_node > 0 && world->only_rank < world->ranks();
}

// Rank 0 makes the id; a rank of another process finds it in the file, which appears whole.
void ShareId(World* world) {
  if (world->only_rank <= 0) Demand(ncclGetUniqueId(&world->id), 0, "GetUniqueId");
  if (world->only_rank < 0) return;
  if (world->only_rank == 0) {
    const std::string draft = world->id_file + ".draft";
    std::ofstream(draft, std::ios::binary).write(world->id.internal, sizeof world->id);
    std::filesystem::rename(draft, world->id_file);
    return;
  }
  while (!std::filesystem::exists(world->id_file)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::ifstream(world->id_file, std::ios::binary).read(world->id.internal, sizeof world->id);
}

void RunRanks(const World& world) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    if (world.only_rank < 0 || world.only_rank == rank)
      ranks.emplace_back([&world, rank] { RunRank(world, rank); });
  }
  for (auto& rank : ranks) rank.join();
}

}  // namespace

int main(int count, char** words) {
  World world;
  if (!ParseArguments(count, words, &world)) {
    std::fprintf(stderr, "usage: real_nccl_driver [--rank R --id FILE] NODES RANKS_PER_NODE BYTES...\n");
    return 2;
  }
  if (cuda_standin_redirected == nullptr || cuda_standin_redirected() <= 0) {
    std::fprintf(stderr,
                 "real_nccl_driver: the CUDA stand-in is not preloaded, or NCCL's library is stripped\n");
    return 3;
  }
  int version = 0;
  Demand(ncclGetVersion(&version), 0, "GetVersion");
  ShareId(&world);
  RunRanks(world);
  std::printf("done: NCCL %d, %d ranks, %llu launches\n", version, world.ranks(),
              static_cast<unsigned long long>(cuda_standin_launches()));
  return 0;
}
