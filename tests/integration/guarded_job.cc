// SPDX-License-Identifier: Apache-2.0
// One rank of a job for the guard. The plain program issues AllReduces of the same sizes over and over.
//   guarded_job <file for the unique id> <calls>
// RANK and WORLD_SIZE come from the environment, and also:
//   JOB_BYTES     sizes, separated by commas, which calls use in turn
//   JOB_ORDER     "mixed": sizes come in an order without a period, the same in each run
//   JOB_UNTIL     file: if rank 0 finds it before a call, all ranks end after that call
//   JOB_TIMES     file in which rank 0 leaves "<bytes> <ns>" of each call, from issue to end
//   JOB_PAUSE_AT  before this call rank 0 writes its process id into the file JOB_PAUSE and waits until that
//                 file is removed
//   JOB_LATE      "<rank> <call> <microseconds>": from this call on, the rank issues each call so much later
//   JOB_BYTES_FROM  "<call> <sizes>": from this call on, calls use these sizes in turn
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"
#include "tests/integration/unique_id_by_file.h"

namespace {

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<size_t> SizesIn(const std::string& text) {
  std::istringstream words(text);
  std::vector<size_t> sizes;
  for (std::string word; std::getline(words, word, ',');) sizes.push_back(std::stoul(word));
  return sizes;
}

// The sizes of calls from the call `from` on. If `from` is below 0, sizes do not change.
struct Change {
  long from = -1;
  std::vector<size_t> sizes;
};
Change ChangeOfSizes() {
  std::istringstream words(FromEnvironment("JOB_BYTES_FROM"));
  Change change;
  std::string sizes;
  if (words >> change.from >> sizes) change.sizes = SizesIn(sizes);
  return change;
}

struct Lateness {
  int rank = -1;
  long from = 0;
  long us = 0;
};
Lateness LatenessOfJob() {
  std::istringstream words(FromEnvironment("JOB_LATE"));
  Lateness late;
  words >> late.rank >> late.from >> late.us;
  return late;
}
void Wait(long us) {
  const timespec time{us / 1'000'000, us % 1'000'000 * 1000};
  ::nanosleep(&time, nullptr);
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

// Returns the index in `sizes` of the call's size.
size_t SizeOfCall(const std::vector<size_t>& sizes, long call) {
  static const bool mixed = FromEnvironment("JOB_ORDER") == "mixed";
  auto place = static_cast<uint64_t>(call);
  if (mixed) place = std::minstd_rand(static_cast<uint32_t>(call + 1) * 2654435761u)() >> 8;
  return sizes[place % sizes.size()];
}

// Rank 0 announces the last call by this element of the job's data. Every rank receives it, since the
// AllReduce returns the maximum.
constexpr float kLastCall = 1;

bool FileToEndIsThere() {
  static const std::string path = FromEnvironment("JOB_UNTIL");
  return !path.empty() && ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int rank = std::atoi(FromEnvironment("RANK").c_str());
  const int n_ranks = std::atoi(FromEnvironment("WORLD_SIZE").c_str());
  const long calls = std::atol(argv[2]);
  const std::string pause = FromEnvironment("JOB_PAUSE_AT");
  const std::vector<size_t> sizes = SizesIn(FromEnvironment("JOB_BYTES"));
  const Change change = ChangeOfSizes();
  const Lateness late = LatenessOfJob();
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // sleeps last no longer than asked for
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  Check(hostcclStreamCreate(&stream), "hostcclStreamCreate");
  Check(ncclCommInitRank(&comm, n_ranks, UniqueIdByFile(argv[1], rank), rank), "ncclCommInitRank");
  std::vector<float> data(16u << 20);
  std::vector<std::pair<size_t, long long>> times;
  for (long call = 0; call < calls; ++call) {
    if (rank == 0 && !pause.empty() && std::atol(pause.c_str()) == call) Pause();
    const bool changed = change.from >= 0 && call >= change.from;
    const std::vector<size_t>& now = changed ? change.sizes : sizes;
    const size_t bytes = SizeOfCall(now, call);
    if (rank == 0 && FileToEndIsThere()) data[0] = kLastCall;
    if (rank == late.rank && call >= late.from) Wait(late.us);
    const long long begun = Now();
    Check(ncclAllReduce(data.data(), data.data(), bytes / sizeof(float), ncclFloat32, ncclMax, comm, stream),
          "ncclAllReduce");
    Check(hostcclStreamSynchronize(stream), "hostcclStreamSynchronize");
    times.emplace_back(bytes, Now() - begun);
    if (data[0] == kLastCall) break;
  }
  if (rank == 0) {
    std::ofstream file(FromEnvironment("JOB_TIMES"));
    for (const auto& [bytes, ns] : times) file << bytes << " " << ns << "\n";
  }
  Check(ncclCommDestroy(comm), "ncclCommDestroy");
  hostcclStreamDestroy(stream);
}
