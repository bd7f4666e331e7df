// SPDX-License-Identifier: Apache-2.0
// Runs some ranks of an NCCL world that times AllReduce and checks its sums. A process runs one rank, or
// several as threads.
//
//   rank_program --id FILE --ranks N --first R [--here K] --bytes B [--iterations I] [--graph]
//                [--selection S]
//
// It prints one JSON line for each rank. Exit codes: 0 the sums are right, 1 sums are wrong, 2 usage, 3 no
// GPU, 4 a call failed.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "rank_program.h"

namespace first_hour {
namespace {

// Number of untimed calls. The first one makes connections, and the next ones load code.
constexpr int kWarmUpCalls = 5;
// Number of timed repeats. The program reports their median.
constexpr int kRepeats = 20;

// Ends the process if a CUDA call fails: with code 3 if there is no GPU, otherwise with code 4.
void DemandCuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::_Exit(result == cudaErrorNoDevice || result == cudaErrorInsufficientDriver ? 3 : 4);
}

void DemandNccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s (%s)\n", what, ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::_Exit(4);
}

// One rank's communicator, stream and buffers. They are never freed, because the process ends with them.
struct Rank {
  int rank = 0;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  float* send = nullptr;
  float* receive = nullptr;
  size_t count = 0;
};

Rank SetUp(const Options& options, const ncclUniqueId& id, int number) {
  Rank rank{.rank = number, .count = std::max<size_t>(options.bytes / sizeof(float), 1)};
  int devices = 0;
  DemandCuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  DemandCuda(cudaSetDevice(number % devices), "cudaSetDevice");
  DemandCuda(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const size_t bytes = rank.count * sizeof(float);
  DemandCuda(cudaMalloc(reinterpret_cast<void**>(&rank.send), bytes), "cudaMalloc");
  DemandCuda(cudaMalloc(reinterpret_cast<void**>(&rank.receive), bytes), "cudaMalloc");
  const std::vector<float> values(rank.count, static_cast<float>(number + 1));
  DemandCuda(cudaMemcpy(rank.send, values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  DemandNccl(ncclCommInitRank(&rank.communicator, options.ranks, id, number), "ncclCommInitRank");
  return rank;
}

void Issue(const Options& options, const Rank& rank, int calls) {
  for (int call = 0; call < calls; ++call) {
    DemandNccl(
        AllReduce({rank.send, rank.receive, rank.count, rank.communicator, rank.stream}, options.selection),
        "ncclAllReduce");
  }
}

// Rank r sends r + 1 in all elements, so every sum must be n (n + 1) / 2.
bool SumsAreRight(const Options& options, const Rank& rank) {
  std::vector<float> values(rank.count);
  DemandCuda(cudaMemcpy(values.data(), rank.receive, rank.count * sizeof(float), cudaMemcpyDeviceToHost),
             "cudaMemcpy");
  const auto expected = static_cast<float>(options.ranks * (options.ranks + 1) / 2);
  return std::all_of(values.begin(), values.end(), [expected](float value) { return value == expected; });
}

// Captures the calls of one repeat as a graph. Returns null without --graph.
cudaGraphExec_t Capture(const Options& options, const Rank& rank) {
  if (!options.graph) return nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  DemandCuda(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  Issue(options, rank, options.iterations);
  DemandCuda(cudaStreamEndCapture(rank.stream, &graph), "cudaStreamEndCapture");
  DemandCuda(cudaGraphInstantiateWithFlags(&executable, graph, 0), "cudaGraphInstantiate");
  DemandCuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return executable;
}

// Returns the microseconds of a call in each repeat, sorted. CUDA events measure them.
std::vector<float> Time(const Options& options, const Rank& rank, std::barrier<>& together) {
  cudaEvent_t begin = nullptr, end = nullptr;
  DemandCuda(cudaEventCreate(&begin), "cudaEventCreate");
  DemandCuda(cudaEventCreate(&end), "cudaEventCreate");
  const cudaGraphExec_t graph = Capture(options, rank);
  std::vector<float> times(kRepeats);
  for (float& microseconds : times) {
    together.arrive_and_wait();
    DemandCuda(cudaEventRecord(begin, rank.stream), "cudaEventRecord");
    if (graph == nullptr) {
      Issue(options, rank, options.iterations);
    } else {
      DemandCuda(cudaGraphLaunch(graph, rank.stream), "cudaGraphLaunch");
    }
    DemandCuda(cudaEventRecord(end, rank.stream), "cudaEventRecord");
    DemandCuda(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    float milliseconds = 0;
    DemandCuda(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    microseconds = milliseconds * 1000 / static_cast<float>(options.iterations);
  }
  if (graph != nullptr) DemandCuda(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  std::sort(times.begin(), times.end());
  return times;
}

bool RunRank(const Options& options, const ncclUniqueId& id, int number, std::barrier<>& together) {
  const Rank rank = SetUp(options, id, number);
  Issue(options, rank, kWarmUpCalls);
  DemandCuda(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
  const std::vector<float> times = Time(options, rank, together);
  const bool right = SumsAreRight(options, rank);
  std::printf(
      "{\"rank\":%d,\"bytes\":%zu,\"median_us\":%.3f,\"min_us\":%.3f,\"max_us\":%.3f,\"calls\":%d,\"right\":%"
      "s}\n",
      number, options.bytes, static_cast<double>(times[kRepeats / 2]), static_cast<double>(times.front()),
      static_cast<double>(times.back()), kWarmUpCalls + kRepeats * options.iterations,
      right ? "true" : "false");
  std::fflush(stdout);
  DemandNccl(ncclCommDestroy(rank.communicator), "ncclCommDestroy");
  return right;
}

// Rank 0's process creates the id and writes it to the file; the others wait for the file.
ncclUniqueId ShareId(const Options& options) {
  ncclUniqueId id;
  const std::string draft = options.id_file + ".draft";
  if (options.first == 0) {
    DemandNccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    FILE* file = std::fopen(draft.c_str(), "wb");
    const bool written =
        file != nullptr && std::fwrite(&id, sizeof id, 1, file) == 1 && std::fclose(file) == 0;
    if (!written || std::rename(draft.c_str(), options.id_file.c_str()) != 0) std::_Exit(4);
    return id;
  }
  // The caller's timeout ends the wait if rank 0 never comes.
  FILE* file = nullptr;
  while ((file = std::fopen(options.id_file.c_str(), "rb")) == nullptr) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (std::fread(&id, sizeof id, 1, file) != 1) std::_Exit(4);
  std::fclose(file);
  return id;
}

}  // namespace

int Run(const Options& options) {
  int devices = 0;
  DemandCuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const ncclUniqueId id = ShareId(options);
  std::barrier<> together(options.here);
  std::atomic<int> wrong{0};
  std::vector<std::thread> ranks;
  for (int rank = options.first; rank < options.first + options.here; ++rank) {
    ranks.emplace_back([&, rank] { wrong += RunRank(options, id, rank, together) ? 0 : 1; });
  }
  for (auto& rank : ranks) rank.join();
  return wrong == 0 ? 0 : 1;
}

}  // namespace first_hour

int main(int count, char** words) {
  first_hour::Options options;
  if (!first_hour::ParseOptions(count, words, &options)) {
    std::fprintf(
        stderr,
        "usage: rank_program --id FILE --ranks N --first R [--here K] --bytes B [--iterations I] [--graph] "
        "[--selection S]\n");
    return 2;
  }
  return first_hour::Run(options);
}
