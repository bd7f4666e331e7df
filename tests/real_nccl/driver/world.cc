// SPDX-License-Identifier: Apache-2.0
// Implements ranks, their unique ids and the reports of what they launched.
#include "tests/real_nccl/driver/world.h"

#include <sched.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>

#include "tests/real_nccl/cuda_standin/cuda_standin.h"

namespace real_nccl_driver {
namespace {

constexpr uint64_t kFnvPrime = 1099511628211u;

void Mix(uint64_t* digest, const void* data, size_t bytes) {
  const auto* letters = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) *digest = (*digest ^ letters[i]) * kFnvPrime;
}

cpu_set_t CpusOfThisThread() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  return cpus;
}

void GiveCpusBack(const cpu_set_t& before, int rank) {
  const cpu_set_t now = CpusOfThisThread();
  if (CPU_EQUAL(&before, &now)) return;
  std::printf("driver: %d was left on other CPUs\n", rank);
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace

void Demand(ncclResult_t result, int rank, const char* what) {
  if (result == ncclSuccess) return;
  std::fflush(stdout);
  std::fprintf(stderr, "rank %d: %s: %s (%s)\n", rank, what, ncclGetErrorString(result),
               ncclGetLastError(nullptr));
  std::_Exit(4);
}

void ReportSkipped(std::string_view what, const NewerFunction& needed, int version) {
  const auto text = [](int code) {
    return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
           std::to_string(code % 100);
  };
  std::printf("driver: skipped %s: NCCL %s has no nccl%s, which came with %s\n", std::string(what).c_str(),
              text(version).c_str(), needed.name, text(needed.since).c_str());
}

ncclUniqueId IdOf(const World& world, const std::string& name, bool makes, int rank) {
  const std::string path = world.ids + "/id_" + name;
  ncclUniqueId id = {};
  if (makes) {
    Demand(ncclGetUniqueId(&id), rank, "GetUniqueId");
    std::ofstream(path + ".draft", std::ios::binary).write(id.internal, sizeof id);
    std::filesystem::rename(path + ".draft", path);  // other ranks see only the whole file
    return id;
  }
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::ifstream(path, std::ios::binary).read(id.internal, sizeof id);
  return id;
}

std::pair<int, int> World::PlaceOf(int rank) const {
  int node = 0;
  while (rank >= ranks_of_nodes[static_cast<size_t>(node)])
    rank -= ranks_of_nodes[static_cast<size_t>(node++)];
  return {node, rank};
}

Rank::Rank(const World& world, int rank) : world_(world), rank_(rank) {
  std::tie(node_, local_rank_) = world.PlaceOf(rank);
  const bool of_all = static_cast<int>(world.devices.size()) == world.ranks();
  const auto place = static_cast<size_t>(of_all ? rank : local_rank());
  const int device = place < world.devices.size() ? world.devices[place] : local_rank();
  cuda_standin_set_place(node(), device % cuda_standin_devices());
}

Rank::~Rank() {
  cuda_standin_free(buffers_.send);
  cuda_standin_free(buffers_.receive);
  std::printf("driver: %d calls %" PRIu64 " kernels %" PRIu64 " digest %016" PRIx64 "\n", rank_, calls_,
              kernels_, digest_);
  std::fflush(stdout);
}

ncclComm_t Rank::Join(const std::string& name, ncclConfig_t* config) {
  const ncclUniqueId id = IdOf(world_, name, rank_ == 0, rank_);
  const auto begin = std::chrono::steady_clock::now();
  const cpu_set_t cpus = CpusOfThisThread();
  ncclComm_t communicator = nullptr;
  if (config == nullptr)
    Demand(ncclCommInitRank(&communicator, world_.ranks(), id, rank_), rank_, "CommInitRank");
  else
    Demand(ncclCommInitRankConfig(&communicator, world_.ranks(), id, rank_, config), rank_,
           "CommInitRankConfig");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  GiveCpusBack(cpus, rank_);
  std::printf("driver: %d joined %s in %.2f s\n", rank_, name.c_str(), taken.count());
  std::fflush(stdout);
  return communicator;
}

void Rank::Destroy(ncclComm_t communicator) {
  Demand(ncclCommDestroy(communicator), rank_, "CommDestroy");
}

void Rank::ReportMemory() const {
  std::printf("driver: %d holds %" PRIu64 " of device memory\n", rank_, cuda_standin_device_memory());
}

Buffers Rank::BuffersOf(size_t bytes) {
  const size_t room = bytes + sizeof(float) * static_cast<size_t>(world_.ranks());
  if (room > room_) {
    cuda_standin_free(buffers_.send);
    cuda_standin_free(buffers_.receive);
    buffers_ = {cuda_standin_allocate(room), cuda_standin_allocate(room)};
    room_ = room;
  }
  return buffers_;
}

uint64_t Rank::Launches() {
  return cuda_standin_thread_launches(nullptr);
}

void Rank::Report(const char* function, size_t total_bytes, uint64_t launches_before) {
  cuda_standin_launch last = {};
  const uint64_t launched = cuda_standin_thread_launches(&last) - launches_before;
  ++calls_;
  kernels_ += launched;
  const char* kernel = launched == 0 ? "-" : last.kernel;
  const unsigned grid = launched == 0 ? 0 : last.grid;
  Mix(&digest_, kernel, std::strlen(kernel));
  Mix(&digest_, &grid, sizeof grid);
  if (rank_ != 0 || world_.repeats > 1) return;
  std::printf("driver: %d %s %zu launched %" PRIu64 " %s %u %u\n", rank_, function, total_bytes, launched,
              kernel, grid, launched == 0 ? 0 : last.block);
}

void IssueAll(Rank& rank, ncclComm_t communicator, int ranks, size_t bytes) {
  const auto n = static_cast<size_t>(ranks);
  const size_t share = (bytes / sizeof(float) + n - 1) / n;
  const size_t count = share * n, total = count * sizeof(float);
  const auto [send, receive] = rank.BuffersOf(bytes);
  const auto call = [&](const char* function, auto&& issue) {
    if (rank.world().Issues(function)) rank.Call(function, total, issue);
  };
  call("AllReduce", [&, send = send, receive = receive] {
    return ncclAllReduce(send, receive, count, ncclFloat, ncclSum, communicator, nullptr);
  });
  call("AllGather", [&, send = send, receive = receive] {
    return ncclAllGather(send, receive, share, ncclFloat, communicator, nullptr);
  });
  call("ReduceScatter", [&, send = send, receive = receive] {
    return ncclReduceScatter(send, receive, share, ncclFloat, ncclSum, communicator, nullptr);
  });
  call("Broadcast", [&, send = send, receive = receive] {
    return ncclBroadcast(send, receive, count, ncclFloat, 0, communicator, nullptr);
  });
  call("Reduce", [&, send = send, receive = receive] {
    return ncclReduce(send, receive, count, ncclFloat, ncclSum, 0, communicator, nullptr);
  });
}

}  // namespace real_nccl_driver
