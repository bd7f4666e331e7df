// SPDX-License-Identifier: Apache-2.0
// Measures the time of a small collective of hostccl from call to result. Ranks are processes. It measures
// single calls, each followed by a stream synchronize, and calls that follow each other directly. Inline
// calls and calls through the stream take turns, each in new processes, because a communicator reads
// HOSTCCL_INLINE when it is created.
//
//   build/release/bin/latency_bench -n 2 -b 1024,16384 --json
//
// NCCL_ALGO and NCCL_PROTO choose the config as in any program.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/statistics.h"
#include "src/nccl_abi/host_stream.h"

namespace {

struct Options {
  int ranks = 2;
  std::vector<size_t> bytes{8, 1024, 4096, 16384};
  int calls = 20'000;
  int rounds = 5;
  bool json = false;
};

// One measurement in microseconds: percentiles of single calls on rank 0, and the mean of calls that follow
// each other directly. On a busy machine only p1 shows the speed of hostccl.
struct Figures {
  double p1 = 0;
  double p50 = 0;
  double p99 = 0;
  double back_to_back = 0;
};

// Shared by all processes of a run; lives in shared memory.
struct SharedState {
  ncclUniqueId id;
  Figures figures;
};

// Number of untimed calls. The first calls of a new communicator touch its memory for the first time.
constexpr int kWarmUp = 2000;

int64_t Now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void Check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "latency_bench: %s: %s\n", what, ncclGetLastError(nullptr));
  std::_Exit(1);
}

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<float> send;
  std::vector<float> recv;

  void Call() {
    Check(ncclAllReduce(send.data(), recv.data(), send.size(), ncclFloat, ncclSum, comm, stream),
          "AllReduce");
  }
  void Synchronize() { Check(hostcclStreamSynchronize(stream), "synchronize"); }
};

std::vector<double> SingleCalls(Rank& rank, int calls) {
  std::vector<double> times;
  for (int call = 0; call < kWarmUp + calls; ++call) {
    const int64_t start = Now();
    rank.Call();
    rank.Synchronize();
    if (call >= kWarmUp) times.push_back(static_cast<double>(Now() - start) * 1e-3);
  }
  return times;
}

double BackToBack(Rank& rank, int calls) {
  const int64_t start = Now();
  for (int call = 0; call < calls; ++call) rank.Call();
  rank.Synchronize();
  return static_cast<double>(Now() - start) * 1e-3 / calls;
}

void RunRank(const Options& options, size_t bytes, int number, SharedState& shared) {
  Rank rank{.send = std::vector<float>(bytes / sizeof(float), 1),
            .recv = std::vector<float>(bytes / sizeof(float))};
  Check(ncclCommInitRank(&rank.comm, options.ranks, shared.id, number), "init");
  Check(hostcclStreamCreate(&rank.stream), "stream");
  const std::vector<double> times = SingleCalls(rank, options.calls);
  const double back_to_back = BackToBack(rank, options.calls);
  Check(rank.recv.back() == static_cast<float>(options.ranks) ? ncclSuccess : ncclInternalError, "wrong sum");
  if (number == 0)
    shared.figures = {dynamiccl::Quantile(times, 0.01), dynamiccl::Median(times),
                      dynamiccl::Quantile(times, 0.99), back_to_back};
  hostcclStreamDestroy(rank.stream);
  ncclCommDestroy(rank.comm);
}

// Runs all ranks in new processes. The process that creates the unique id also serves the bootstrap of the
// others, so it is a rank itself.
Figures RunOnce(const Options& options, size_t bytes, bool inline_calls) {
  ::setenv("HOSTCCL_INLINE", inline_calls ? "1" : "0", 1);
  void* const memory =
      ::mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) SharedState{};
  int ready[2];
  if (::pipe(ready) != 0) std::_Exit(1);
  std::vector<pid_t> children;
  for (int number = 0; number < options.ranks; ++number) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    char token = 0;
    if (number == 0) {
      Check(ncclGetUniqueId(&shared.id), "unique id");
      for (int other = 1; other < options.ranks; ++other) {
        if (::write(ready[1], &token, 1) != 1) std::_Exit(1);
      }
    } else if (::read(ready[0], &token, 1) != 1) {
      std::_Exit(1);
    }
    RunRank(options, bytes, number, shared);
    std::_Exit(0);
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  ::close(ready[0]);
  ::close(ready[1]);
  const Figures figures = shared.figures;
  ::munmap(memory, sizeof(SharedState));
  if (!good) std::exit(1);
  return figures;
}

double MedianOf(const std::vector<Figures>& rounds, double Figures::*field) {
  std::vector<double> values;
  for (const Figures& round : rounds) values.push_back(round.*field);
  return dynamiccl::MedianInPlace(values);
}

void Print(const Options& options, size_t bytes, const char* path, std::vector<Figures>& rounds) {
  const double p1 = MedianOf(rounds, &Figures::p1);
  const double p50 = MedianOf(rounds, &Figures::p50);
  const double p99 = MedianOf(rounds, &Figures::p99);
  const double back_to_back = MedianOf(rounds, &Figures::back_to_back);
  if (options.json) {
    const nlohmann::json line{
        {"schema", 1}, {"ranks", options.ranks}, {"bytes", bytes}, {"path", path},
        {"p1_us", p1}, {"p50_us", p50},          {"p99_us", p99},  {"back_to_back_us", back_to_back}};
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%6d %10zu  %-7s %9.2f %9.2f %9.2f %13.2f\n", options.ranks, bytes, path, p1, p50, p99,
                back_to_back);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Latency of small AllReduce calls in hostccl: medians of rounds, in microseconds");
  app.add_option("-n,--ranks", options.ranks, "processes")->check(CLI::Range(1, 64));
  app.add_option("-b,--bytes", options.bytes, "message sizes, comma separated")->delimiter(',');
  app.add_option("-c,--calls", options.calls, "calls a round")->check(CLI::Range(100, 10'000'000));
  app.add_option("-r,--rounds", options.rounds, "rounds, inline and stream in turn")
      ->check(CLI::Range(1, 99));
  app.add_flag("--json", options.json, "one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  if (!options.json) std::printf(" ranks      bytes  path           p1       p50       p99  back to back\n");
  for (const size_t bytes : options.bytes) {
    std::map<bool, std::vector<Figures>> rounds;
    for (int round = 0; round < options.rounds; ++round) {
      for (const bool inline_calls : {true, false}) {
        rounds[inline_calls].push_back(RunOnce(options, std::max<size_t>(4, bytes), inline_calls));
      }
    }
    Print(options, bytes, "inline", rounds[true]);
    Print(options, bytes, "stream", rounds[false]);
  }
  return 0;
}
