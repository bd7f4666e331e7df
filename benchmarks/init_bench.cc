// SPDX-License-Identifier: Apache-2.0
// Measures what creating a communicator of hostccl takes: the time until all ranks have it, and the memory of
// a rank before it, after it, and after calls have touched its buffers. Memory is PSS: a page that k
// processes share counts as 1/k in each.
//
//   build/release/bin/init_bench --threads 2,8,64 --processes 2,16
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/base/statistics.h"
#include "src/nccl_abi/host_stream.h"

namespace {

constexpr int kMaxRanks = 64;
// Sizes of the calls that touch buffers. They are small enough for LL and large enough to fill all slots of
// every protocol's first choice.
constexpr size_t kCallBytes[] = {1 << 10, 64 << 10, 4 << 20};

struct Options {
  std::vector<int> threads{2, 8, 64};
  std::vector<int> processes{2, 16};
  int rounds = 5;
};

// Measurements of one rank.
struct Figures {
  // Time of the first communicator of the process.
  double first_ms = 0;
  // Time of a second communicator, while the first one exists.
  double second_ms = 0;
  // Time to destroy the second communicator.
  double destroy_ms = 0;
  int64_t pss_before_kib = 0;
  int64_t pss_made_kib = 0;
  int64_t pss_used_kib = 0;
};

// Shared by all ranks of a run; lives in shared memory.
struct SharedState {
  pthread_barrier_t barrier;
  ncclUniqueId ids[2];
  Figures figures[kMaxRanks];
};

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since).count();
}

void Check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "init_bench: %s: %s\n", what, ncclGetLastError(nullptr));
  std::_Exit(1);
}

int64_t PssKib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Pss:")) return std::stoll(line.substr(4));
  }
  return 0;
}

// Reads the memory while all ranks are in the same state.
int64_t PssTogether(SharedState& shared) {
  ::pthread_barrier_wait(&shared.barrier);
  const int64_t pss = PssKib();
  ::pthread_barrier_wait(&shared.barrier);
  return pss;
}

// Returns the milliseconds from the moment when all ranks may begin until this rank is done.
double Timed(SharedState& shared, const auto& work, const char* what) {
  ::pthread_barrier_wait(&shared.barrier);
  const auto start = std::chrono::steady_clock::now();
  Check(work(), what);
  return Milliseconds(start);
}

void UseBuffers(ncclComm_t comm, int ranks) {
  cudaStream_t stream = nullptr;
  Check(hostcclStreamCreate(&stream), "stream");
  for (const size_t bytes : kCallBytes) {
    std::vector<float> data(bytes / sizeof(float), 1);
    Check(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, stream),
          "AllReduce");
    Check(hostcclStreamSynchronize(stream), "synchronize");
    Check(data.back() == static_cast<float>(ranks) ? ncclSuccess : ncclInternalError, "wrong sum");
  }
  Check(hostcclStreamDestroy(stream), "stream");
}

void RunRank(int rank, int ranks, SharedState& shared) {
  Figures& figures = shared.figures[rank];
  ncclComm_t comms[2] = {};
  figures.pss_before_kib = PssTogether(shared);
  if (rank == 0) {
    for (ncclUniqueId& id : shared.ids) Check(ncclGetUniqueId(&id), "unique id");
  }
  const auto init = [&](int which) {
    return Timed(
        shared, [&] { return ncclCommInitRank(&comms[which], ranks, shared.ids[which], rank); }, "init");
  };
  figures.first_ms = init(0);
  figures.pss_made_kib = PssTogether(shared);
  figures.second_ms = init(1);
  figures.destroy_ms = Timed(
      shared, [&] { return ncclCommDestroy(comms[1]); }, "destroy");
  UseBuffers(comms[0], ranks);
  figures.pss_used_kib = PssTogether(shared);
  Check(ncclCommDestroy(comms[0]), "destroy");
}

void RunThreads(int ranks, SharedState& shared) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(RunRank, rank, ranks, std::ref(shared));
  for (std::thread& thread : threads) thread.join();
}

void RunProcesses(int ranks, SharedState& shared) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (::fork() != 0) continue;
    RunRank(rank, ranks, shared);
    std::_Exit(0);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    ::wait(&status);
    // The other ranks wait in a barrier for the rank that failed, so the whole process group is ended.
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::_Exit(::kill(0, SIGTERM));
  }
}

// Runs a round in a new process, so that nothing of an earlier round is warm and no threads exist at the
// fork.
std::vector<Figures> RunRound(int ranks, bool as_threads) {
  void* const memory =
      ::mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) SharedState{};
  pthread_barrierattr_t attributes;
  ::pthread_barrierattr_init(&attributes);
  ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_barrier_init(&shared.barrier, &attributes, static_cast<unsigned>(ranks));
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    as_threads ? RunThreads(ranks, shared) : RunProcesses(ranks, shared);
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::exit(1);
  std::vector<Figures> figures(shared.figures, shared.figures + ranks);
  ::munmap(memory, sizeof(SharedState));
  return figures;
}

// Returns the median over rounds of the slowest rank's time.
double MedianOfSlowest(const std::vector<std::vector<Figures>>& rounds, double Figures::*field) {
  std::vector<double> slowest;
  for (const auto& ranks : rounds) {
    double most = 0;
    for (const Figures& rank : ranks) most = std::max(most, rank.*field);
    slowest.push_back(most);
  }
  return dynamiccl::MedianInPlace(slowest);
}

// Returns the mean memory of a rank. Threads of one process each report the whole process, so their sum is
// divided by the number of ranks twice.
double MeanKib(const std::vector<Figures>& ranks, bool as_threads, int64_t Figures::*field) {
  double sum = 0;
  for (const Figures& rank : ranks) sum += static_cast<double>(rank.*field);
  const auto n = static_cast<double>(ranks.size());
  return as_threads ? sum / n / n : sum / n;
}

void Measure(int ranks, bool as_threads, int n_rounds) {
  std::vector<std::vector<Figures>> rounds;
  for (int round = 0; round < n_rounds; ++round) rounds.push_back(RunRound(ranks, as_threads));
  const auto kib = [&](int64_t Figures::*field) { return MeanKib(rounds.back(), as_threads, field); };
  std::printf("%5d %-9s %9.2f %9.2f %9.2f %11.0f %9.0f %9.0f\n", ranks, as_threads ? "threads" : "processes",
              MedianOfSlowest(rounds, &Figures::first_ms), MedianOfSlowest(rounds, &Figures::second_ms),
              MedianOfSlowest(rounds, &Figures::destroy_ms), kib(&Figures::pss_before_kib),
              kib(&Figures::pss_made_kib), kib(&Figures::pss_used_kib));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Time and memory of hostccl's communicators: slowest rank, median of rounds; PSS a rank");
  app.add_option("--threads", options.threads, "numbers of ranks as threads")
      ->delimiter(',')
      ->check(CLI::Range(1, kMaxRanks));
  app.add_option("--processes", options.processes, "numbers of ranks as processes")
      ->delimiter(',')
      ->check(CLI::Range(1, kMaxRanks));
  app.add_option("-r,--rounds", options.rounds, "rounds")->check(CLI::Range(1, 999));
  CLI11_PARSE(app, argc, argv);
  std::printf("ranks as         first ms second ms destroy ms  before KiB  made KiB  used KiB\n");
  for (const int ranks : options.threads) Measure(ranks, true, options.rounds);
  for (const int ranks : options.processes) Measure(ranks, false, options.rounds);
  return 0;
}
