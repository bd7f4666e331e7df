// SPDX-License-Identifier: Apache-2.0
// One rank of a job that issues the same AllReduces over and over, a plain program: what a guard has to do
// with.
//   guarded_job <file for the unique id> <calls>
// RANK and WORLD_SIZE come from the environment, and:
//   JOB_BYTES     sizes in turn, separated by commas
//   JOB_TIMES     file in which rank 0 leaves "<bytes> <ns>" of each call, from issue to end
//   JOB_PAUSE_AT  call before which rank 0 makes the file JOB_PAUSE with its process id and waits until it is
//   gone
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"
#include "tests/integration/unique_id_by_file.h"

namespace {

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<size_t> Sizes() {
  std::istringstream words(FromEnvironment("JOB_BYTES"));
  std::vector<size_t> sizes;
  for (std::string word; std::getline(words, word, ',');) sizes.push_back(std::stoul(word));
  return sizes;
}

long long Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void Pause() {
  const std::string path = FromEnvironment("JOB_PAUSE");
  std::ofstream(path + ".new") << ::getpid() << "\n";
  std::rename((path + ".new").c_str(), path.c_str());
  while (::access(path.c_str(), F_OK) == 0) ::usleep(1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int rank = std::atoi(FromEnvironment("RANK").c_str());
  const int n_ranks = std::atoi(FromEnvironment("WORLD_SIZE").c_str());
  const long calls = std::atol(argv[2]);
  const std::string pause = FromEnvironment("JOB_PAUSE_AT");
  const std::vector<size_t> sizes = Sizes();
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  Check(hostcclStreamCreate(&stream), "hostcclStreamCreate");
  Check(ncclCommInitRank(&comm, n_ranks, UniqueIdByFile(argv[1], rank), rank), "ncclCommInitRank");
  std::vector<float> data(16u << 20);
  std::vector<long long> times;
  for (long call = 0; call < calls; ++call) {
    if (rank == 0 && !pause.empty() && std::atol(pause.c_str()) == call) Pause();
    const size_t bytes = sizes[static_cast<size_t>(call) % sizes.size()];
    const long long begun = Now();
    Check(ncclAllReduce(data.data(), data.data(), bytes / sizeof(float), ncclFloat32, ncclMax, comm, stream),
          "ncclAllReduce");
    Check(hostcclStreamSynchronize(stream), "hostcclStreamSynchronize");
    times.push_back(Now() - begun);
  }
  if (rank == 0) {
    std::ofstream file(FromEnvironment("JOB_TIMES"));
    for (size_t i = 0; i < times.size(); ++i) file << sizes[i % sizes.size()] << " " << times[i] << "\n";
  }
  Check(ncclCommDestroy(comm), "ncclCommDestroy");
  hostcclStreamDestroy(stream);
}
