// SPDX-License-Identifier: Apache-2.0
// One rank of a small NCCL job. It issues collectives of several sizes, alone and in groups, and checks their
// results. RANK and WORLD_SIZE come from the environment.
//   nccl_job <file for the unique id> [rounds] [split] [many] [fork] [threads] [all] [peers] [stalls]
//            [grouped] [simulated] [nonblocking] [ends] [shrink] [ctas] [oldctas] [splitdefault] [sums]
//            [several] [values]
// A rank with $JOB_LATE_UNTIL begins when that file contains "as the program asks". Some of the words:
//   values: $JOB_STEPS steps of small calls. Each step begins by reading the live value "bucket" and writing
//     it to the file values.<rank>. Now and then a random rank proposes another value. Rank $JOB_DIES dies in
//     step $JOB_DIES_IN.
//   several: makes three communicators of all ranks in one group, and uses them separately and together. Rank
//     $JOB_APART makes them one by one.
//   ctas: the communicator's ncclConfig_t has $JOB_MIN_CTAS, $JOB_MAX_CTAS and $JOB_NVLS_CTAS, where set.
//   oldctas: the same, but the configuration has the size of NCCL 2.14's and ends before these members.
//   splitdefault: like split, but with a configuration that sets nothing. split uses no configuration.
//   grouped: makes the communicator in a group.
//   simulated: the same, but ncclGroupSimulateEnd ends the group.
//   shrink: rank $JOB_DIES dies after its rounds, and the others continue without it.
//   ends: the process ends as $JOB_ENDS says, while its communicator is alive.
//   sums: makes large sums of numbers that are rounded, and prints a digest of the last result. It shows in
//     which order the ranks' parts were added, which depends on the size of chunks.
//   stalls: rounds of 500 small calls with random stalls. There are more rounds while the file $JOB_GOES_ON
//     exists.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/annotate/agreed_value.h"
#include "src/annotate/phase_marker.h"
#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"
#include "tests/integration/unique_id_by_file.h"

namespace {

int FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::atoi(value);
}

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int rank = 0;
  int n_ranks = 1;
};

void AllReduce(const Rank& rank, size_t count) {
  std::vector<float> data(count, static_cast<float>(rank.rank + 1));
  CHECK_NCCL(ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, rank.comm, rank.stream));
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
  const float sum = static_cast<float>(rank.n_ranks * (rank.n_ranks + 1) / 2);
  for (const float value : data) {
    if (value != sum) Fail("wrong sum", static_cast<int>(value));
  }
}

void GatherAndScatter(const Rank& rank, size_t count) {
  const size_t total = count * static_cast<size_t>(rank.n_ranks);
  std::vector<float> part(count, static_cast<float>(rank.rank));
  std::vector<float> whole(total);
  CHECK_NCCL(ncclAllGather(part.data(), whole.data(), count, ncclFloat32, rank.comm, rank.stream));
  CHECK_NCCL(
      ncclReduceScatter(whole.data(), part.data(), count, ncclFloat32, ncclSum, rank.comm, rank.stream));
  CHECK_NCCL(ncclBcast(whole.data(), total, ncclFloat32, 0, rank.comm, rank.stream));
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
  if (part[0] != static_cast<float>(rank.rank * rank.n_ranks))
    Fail("wrong scatter", static_cast<int>(part[0]));
}

void Group(const Rank& rank, size_t count) {
  std::vector<float> a(count, 1.0f), b(count, 2.0f);
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclAllReduce(a.data(), a.data(), count, ncclFloat32, ncclSum, rank.comm, rank.stream));
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclReduce(b.data(), b.data(), count, ncclFloat32, ncclMax, 0, rank.comm, rank.stream));
  CHECK_NCCL(ncclGroupEnd());
  CHECK_NCCL(ncclGroupEnd());
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
  if (a[0] != static_cast<float>(rank.n_ranks)) Fail("wrong group sum", static_cast<int>(a[0]));
}

// Sends data from rank 0 to rank 1. The other ranks take no part.
void SendToNeighbour(const Rank& rank) {
  if (rank.rank > 1) return;
  std::vector<float> data(100, static_cast<float>(rank.rank));
  CHECK_NCCL(ncclGroupStart());
  if (rank.rank == 0) CHECK_NCCL(ncclSend(data.data(), data.size(), ncclFloat32, 1, rank.comm, rank.stream));
  if (rank.rank == 1) CHECK_NCCL(ncclRecv(data.data(), data.size(), ncclFloat32, 0, rank.comm, rank.stream));
  CHECK_NCCL(ncclGroupEnd());
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
  if (data[0] != 0) Fail("wrong data received", static_cast<int>(data[0]));
}

// Sleeps for a random time, so that ranks are at different calls.
void Dawdle(const Rank& rank) {
  static thread_local std::minstd_rand random(static_cast<unsigned>(rank.rank) * 7919 + 1);
  ::usleep(static_cast<unsigned>(random() % 3000));
}

// The memory that the program reports. A twentieth of it is free.
constexpr long long kTotalBytes = 80LL << 30;
constexpr long long kFreeBytes = kTotalBytes / 20;

void Round(const Rank& rank, int step) {
  dynamiccl::annotate::MarkPhase(DYNAMICCL_PHASE_BACKWARD, 2, step);
  dynamiccl::annotate::MarkMemory(kFreeBytes, kTotalBytes);
  for (const size_t count : {1, 256, 5000, 70000}) {
    AllReduce(rank, count);
    GatherAndScatter(rank, count);
  }
  Group(rank, 3000);
}

void Use(Rank rank, int rounds, bool with_peers = false) {
  CHECK_NCCL(hostcclStreamCreate(&rank.stream));
  for (int step = 0; step < rounds; ++step) {
    if (with_peers) SendToNeighbour(rank);
    Dawdle(rank);
    Round(rank, step);
  }
  CHECK_NCCL(hostcclStreamDestroy(rank.stream));
}

void UseAndDestroy(const Rank& rank, int rounds, bool with_peers = false) {
  Use(rank, rounds, with_peers);
  CHECK_NCCL(ncclCommDestroy(rank.comm));
}

void Split(const Rank& world, ncclConfig_t* config, int rounds) {
  for (int colours = 1; colours <= 2; ++colours) {
    Rank half;
    CHECK_NCCL(ncclCommSplit(world.comm, world.rank % colours, world.rank, &half.comm, config));
    CHECK_NCCL(ncclCommUserRank(half.comm, &half.rank));
    CHECK_NCCL(ncclCommCount(half.comm, &half.n_ranks));
    UseAndDestroy(half, rounds);
  }
}

// Forks a child, which must live and end without disturbing the parent's job.
void Fork() {
  const pid_t child = ::fork();
  if (child == 0) {
    ncclUniqueId id{};
    ::_exit(ncclGetUniqueId(&id) == ncclSuccess ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) Fail("fork", status);
}

// Drives all ranks of the job on one thread, in groups.
void RunAllRanksOfProcess(int n_ranks) {
  std::vector<ncclComm_t> comms(static_cast<size_t>(n_ranks));
  std::vector<std::vector<float>> data(comms.size(), std::vector<float>(300, 1.0f));
  CHECK_NCCL(ncclCommInitAll(comms.data(), n_ranks, nullptr));
  std::vector<cudaStream_t> streams(comms.size());
  for (cudaStream_t& each : streams) CHECK_NCCL(hostcclStreamCreate(&each));
  float expected = 1;
  for (int round = 0; round < 4; ++round) {
    expected *= static_cast<float>(n_ranks);
    CHECK_NCCL(ncclGroupStart());
    for (size_t i = 0; i < comms.size(); ++i) {
      float* values = data[i].data();
      CHECK_NCCL(ncclAllReduce(values, values, data[i].size(), ncclFloat32, ncclSum, comms[i], streams[i]));
    }
    CHECK_NCCL(ncclGroupEnd());
  }
  for (const cudaStream_t each : streams) CHECK_NCCL(hostcclStreamSynchronize(each));
  if (data[0][0] != expected) Fail("wrong sum of all", static_cast<int>(data[0][0]));
  for (const ncclComm_t comm : comms) CHECK_NCCL(ncclCommDestroy(comm));
  for (const cudaStream_t each : streams) CHECK_NCCL(hostcclStreamDestroy(each));
}

// Delays a rank now and then, so that the others overtake it or wait for it.
void StallNowAndThen(std::minstd_rand& random) {
  if (random() % 64 == 0) ::usleep(static_cast<unsigned>(random() % 20'000));
}

void SmallCalls(const Rank& rank, std::minstd_rand& random) {
  constexpr int kCalls = 499;
  constexpr int kIssuedAhead = 16;
  const auto n_ranks = static_cast<size_t>(rank.n_ranks);
  std::vector<float> ones(kIssuedAhead);
  std::vector<float> parts(16 * n_ranks);
  for (int call = 0; call < kCalls; ++call) {
    float* one = &ones[static_cast<size_t>(call % kIssuedAhead)];
    StallNowAndThen(random);
    if (call % 8 == 3) {
      CHECK_NCCL(ncclAllGather(parts.data() + 16 * rank.rank, parts.data(), 16, ncclFloat32, rank.comm,
                               rank.stream));
      continue;
    }
    *one = 1;
    CHECK_NCCL(ncclAllReduce(one, one, 1, ncclFloat32, ncclSum, rank.comm, rank.stream));
    if (call % kIssuedAhead != kIssuedAhead - 1) continue;
    CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
    if (*one != static_cast<float>(rank.n_ranks)) Fail("wrong small sum", static_cast<int>(*one));
  }
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
}

// Issues the 500th call of a round. Returns true if any rank wants another round.
bool GoesOn(const Rank& rank) {
  const char* path = std::getenv("JOB_GOES_ON");
  float wants = path != nullptr && ::access(path, F_OK) == 0 ? 1 : 0;
  CHECK_NCCL(ncclAllReduce(&wants, &wants, 1, ncclFloat32, ncclMax, rank.comm, rank.stream));
  CHECK_NCCL(hostcclStreamSynchronize(rank.stream));
  return wants != 0;
}

void UseWithStallsAndDestroy(Rank rank, int rounds) {
  std::minstd_rand random(static_cast<unsigned>(rank.rank) * 104729 + 1);
  CHECK_NCCL(hostcclStreamCreate(&rank.stream));
  for (int round = 1;; ++round) {
    SmallCalls(rank, random);
    const bool more = GoesOn(rank);
    if (round >= rounds && !more) break;
  }
  CHECK_NCCL(hostcclStreamDestroy(rank.stream));
  CHECK_NCCL(ncclCommDestroy(rank.comm));
}

// The calls of a step depend on its bucket, so ranks that read different values hang or fail. $JOB_SEED
// decides which rank proposes which value in which step.
void ReadValuesAndDestroy(const std::string& path, Rank world) {
  CHECK_NCCL(hostcclStreamCreate(&world.stream));
  std::ofstream log(std::filesystem::path(path).parent_path() / ("values." + std::to_string(world.rank)));
  std::minstd_rand random(static_cast<unsigned>(64 * FromEnvironment("JOB_SEED") + world.rank) + 1);
  const int dies_in = std::getenv("JOB_DIES") != nullptr && FromEnvironment("JOB_DIES") == world.rank
                          ? FromEnvironment("JOB_DIES_IN")
                          : -1;
  for (int step = 0; step < FromEnvironment("JOB_STEPS"); ++step) {
    const int64_t bucket = dynamiccl::agree::Value("bucket", 4);
    log << step << " " << bucket << std::endl;
    if (step == dies_in) std::_Exit(0);
    if (random() % 64 == 0) Dawdle(world);
    if (random() % 100 == 0) dynamiccl::agree::Propose("bucket", 1 + static_cast<int64_t>(random() % 8));
    for (int64_t call = 0; call < bucket; ++call) AllReduce(world, 10 + static_cast<size_t>(bucket));
  }
  CHECK_NCCL(hostcclStreamDestroy(world.stream));
  CHECK_NCCL(ncclCommDestroy(world.comm));
  log << "after " << dynamiccl::agree::Value("bucket", 4) << std::endl;
}

// Waits until the process that runs the job reports that the rank has ended. Before that, a socket of the
// dead rank may still answer.
void AwaitEndOfRank(const std::filesystem::path& place_of_id, int rank) {
  const auto told = place_of_id.parent_path() / ("ended." + std::to_string(rank));
  while (!std::filesystem::exists(told)) ::usleep(2000);
}

void DieOrShrinkAndUse(const std::string& path, Rank world, int rounds) {
  int dead = FromEnvironment("JOB_DIES");
  CHECK_NCCL(hostcclStreamCreate(&world.stream));
  for (int step = 0; step < rounds; ++step) Round(world, step);
  if (world.rank == dead) std::_Exit(0);
  AwaitEndOfRank(path, dead);
  Rank rest;
  CHECK_NCCL(ncclCommShrink(world.comm, &dead, 1, &rest.comm, nullptr, NCCL_SHRINK_ABORT));
  CHECK_NCCL(ncclCommUserRank(rest.comm, &rest.rank));
  CHECK_NCCL(ncclCommCount(rest.comm, &rest.n_ranks));
  UseAndDestroy(rest, rounds);
  CHECK_NCCL(ncclCommAbort(world.comm));
}

void SumAndTell(Rank world, int rounds) {
  CHECK_NCCL(hostcclStreamCreate(&world.stream));
  std::vector<float> data(70000);
  for (int step = 0; step < rounds; ++step) {
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = 1.0f / static_cast<float>(1 + i % 97 + 101 * static_cast<size_t>(world.rank));
    float* values = data.data();
    CHECK_NCCL(ncclAllReduce(values, values, data.size(), ncclFloat32, ncclSum, world.comm, world.stream));
    CHECK_NCCL(hostcclStreamSynchronize(world.stream));
  }
  uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const float value : data) digest = (digest ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3;
  std::printf("sums %016llx\n", static_cast<unsigned long long>(digest));
  CHECK_NCCL(hostcclStreamDestroy(world.stream));
  CHECK_NCCL(ncclCommDestroy(world.comm));
}

void WaitUntilDone(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    ::usleep(200);
  }
  Check(state, "non-blocking");
}

void UseNonBlockingAndDestroy(const ncclUniqueId& id, Rank world, int rounds) {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto taken = [&](ncclResult_t result, const char* what) {
    if (result != ncclSuccess && result != ncclInProgress) Fail(what, result);
    WaitUntilDone(world.comm);
  };
  taken(ncclCommInitRankConfig(&world.comm, world.n_ranks, id, world.rank, &config), "init");
  CHECK_NCCL(hostcclStreamCreate(&world.stream));
  std::vector<float> data(3000);
  for (int step = 0; step < rounds; ++step) {
    data.assign(data.size(), 1.0f);
    float* values = data.data();
    taken(ncclAllReduce(values, values, data.size(), ncclFloat32, ncclSum, world.comm, world.stream), "call");
    CHECK_NCCL(hostcclStreamSynchronize(world.stream));
    if (data[7] != static_cast<float>(world.n_ranks)) Fail("wrong sum", static_cast<int>(data[7]));
  }
  CHECK_NCCL(hostcclStreamDestroy(world.stream));
  if (dynamiccl::agree::Propose("bucket", 5) || dynamiccl::agree::Value("bucket", 4) != 4)
    Fail("a value of a non-blocking communicator", 0);
  const ncclResult_t ended = ncclCommFinalize(world.comm);
  taken(ended, "finalize");
  CHECK_NCCL(ncclCommDestroy(world.comm));
}

ncclConfig_t ConfigWithCtas(bool old) {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  if (const int least = FromEnvironment("JOB_MIN_CTAS")) config.minCTAs = least;
  if (const int most = FromEnvironment("JOB_MAX_CTAS")) config.maxCTAs = most;
  if (const int nvls = FromEnvironment("JOB_NVLS_CTAS")) config.nvlsCTAs = nvls;
  if (old) config.size = offsetof(ncclConfig_t, cgaClusterSize);
  return config;
}

void BeLate() {
  const char* path = std::getenv("JOB_LATE_UNTIL");
  while (path != nullptr) {
    std::ifstream file(path);
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    if (said.find("as the program asks") != std::string::npos) return;
    ::usleep(2000);
  }
}

void Initialise(Rank& world, const ncclUniqueId& id, const std::set<std::string>& extras) {
  const bool simulated = extras.contains("simulated");
  const bool grouped = simulated || extras.contains("grouped");
  const bool old = extras.contains("oldctas");
  ncclConfig_t config = ConfigWithCtas(old);
  BeLate();
  if (grouped) CHECK_NCCL(ncclGroupStart());
  if (old || extras.contains("ctas")) {
    CHECK_NCCL(ncclCommInitRankConfig(&world.comm, world.n_ranks, id, world.rank, &config));
  } else {
    CHECK_NCCL(ncclCommInitRank(&world.comm, world.n_ranks, id, world.rank));
  }
  if (simulated) CHECK_NCCL(ncclGroupSimulateEnd(nullptr));
  if (grouped && !simulated) CHECK_NCCL(ncclGroupEnd());
}

void AllReduceOnAll(const std::vector<Rank>& worlds) {
  std::vector<std::vector<float>> data(worlds.size(), std::vector<float>(500, 1.0f));
  CHECK_NCCL(ncclGroupStart());
  for (size_t i = 0; i < worlds.size(); ++i) {
    float* values = data[i].data();
    CHECK_NCCL(ncclAllReduce(values, values, data[i].size(), ncclFloat32, ncclSum, worlds[i].comm,
                             worlds[i].stream));
  }
  CHECK_NCCL(ncclGroupEnd());
  for (size_t i = 0; i < worlds.size(); ++i) {
    CHECK_NCCL(hostcclStreamSynchronize(worlds[i].stream));
    if (data[i][7] != static_cast<float>(worlds[i].n_ranks)) Fail("wrong sum", static_cast<int>(data[i][7]));
  }
}

void UseSeveralOfOneGroup(const std::string& path, const Rank& like, int rounds) {
  std::vector<Rank> worlds(3, like);
  std::vector<ncclUniqueId> ids;
  for (size_t i = 0; i < worlds.size(); ++i)
    ids.push_back(UniqueIdByFile(path + "several" + std::to_string(i), like.rank));
  const bool apart = std::getenv("JOB_APART") != nullptr && FromEnvironment("JOB_APART") == like.rank;
  if (!apart) CHECK_NCCL(ncclGroupStart());
  for (size_t i = 0; i < worlds.size(); ++i)
    CHECK_NCCL(ncclCommInitRank(&worlds[i].comm, like.n_ranks, ids[i], like.rank));
  if (!apart) CHECK_NCCL(ncclGroupEnd());
  for (Rank& world : worlds) CHECK_NCCL(hostcclStreamCreate(&world.stream));
  for (int step = 0; step < rounds; ++step) {
    for (const Rank& world : worlds) Round(world, step);
    AllReduceOnAll(worlds);
  }
  for (const Rank& world : worlds) {
    CHECK_NCCL(hostcclStreamDestroy(world.stream));
    CHECK_NCCL(ncclCommDestroy(world.comm));
  }
}

// Ends the process as $JOB_ENDS says, while its communicator is alive.
void End() {
  const std::string how = std::getenv("JOB_ENDS");
  constexpr int kCode = 7;
  if (how == "exit") std::exit(kCode);
  if (how == "exit_of_a_thread") std::thread([] { std::exit(kCode); }).join();
  if (how == "_exit") ::_exit(kCode);
  if (how == "quick_exit") std::quick_exit(kCode);
  if (how == "abort") std::abort();
  if (how == "exception") throw std::runtime_error("nobody catches this");
  if (how == "kill") ::raise(SIGKILL);
  if (how == "segv") ::raise(SIGSEGV);
  if (how == "exec") ::execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
}

void SplitAsAsked(const Rank& world, const std::set<std::string>& extras) {
  ncclConfig_t nothing = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  // NCCL decides the first call of each size; the second call shows who decides later ones.
  const int rounds = extras.contains("ctas") ? 2 : 1;
  if (extras.contains("split")) Split(world, nullptr, rounds);
  if (extras.contains("splitdefault")) Split(world, &nothing, rounds);
}

void RunRank(const std::string& path, int rank, int n_ranks, int rounds,
             const std::set<std::string>& extras) {
  const int communicators = extras.contains("many") ? 20 : 1;
  for (int i = 0; i < communicators; ++i) {
    Rank world{nullptr, nullptr, rank, n_ranks};
    if (extras.contains("several")) {
      UseSeveralOfOneGroup(path, world, rounds);
      continue;
    }
    const ncclUniqueId id = UniqueIdByFile(path + std::to_string(i), rank);
    if (extras.contains("nonblocking")) {
      UseNonBlockingAndDestroy(id, world, rounds);
      continue;
    }
    Initialise(world, id, extras);
    if (extras.contains("fork")) Fork();
    if (extras.contains("shrink")) {
      DieOrShrinkAndUse(path, world, rounds);
      continue;
    }
    if (extras.contains("ends")) {
      Use(world, rounds);
      End();
      continue;
    }
    if (extras.contains("values")) {
      ReadValuesAndDestroy(path, world);
      continue;
    }
    if (extras.contains("sums")) {
      SumAndTell(world, rounds);
      continue;
    }
    SplitAsAsked(world, extras);
    if (extras.contains("stalls")) {
      UseWithStallsAndDestroy(world, rounds);
      continue;
    }
    UseAndDestroy(world, rounds, extras.contains("peers"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 1;
  const std::set<std::string> extras(argv + (argc > 3 ? 3 : argc), argv + argc);
  if (extras.contains("all")) {
    RunAllRanksOfProcess(3);
    return 0;
  }
  if (!extras.contains("threads")) {
    RunRank(argv[1], FromEnvironment("RANK"), FromEnvironment("WORLD_SIZE"), rounds, extras);
    return 0;
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] { RunRank(argv[1], rank, 3, rounds, extras); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}
