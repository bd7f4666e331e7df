// SPDX-License-Identifier: Apache-2.0
// One rank of a job whose steps are not all alike.
//   unsteady_job <file for the unique id> <steps>
// RANK and WORLD_SIZE come from the environment, and also JOB_KIND:
//   accumulation   each step has three equal micro-steps and then the calls that end it
//   communicators  a second communicator has longer steps, one after every third step of the first
//   evaluation     every seventh step is followed by gathers of an evaluation
//   changing       each step has other calls, and another number of them
//   late           rank 1 begins each step 3 ms after the others
//   steady         all steps are alike
#include <time.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "src/nccl_abi/nccl_api.h"
#include "tests/integration/unique_id_by_file.h"

namespace {

constexpr size_t kMostElements = 1u << 16;
constexpr int kStepsOfSecond = 3;
constexpr int kStepsOfEvaluation = 7;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class Rank {
 public:
  Rank(const std::string& id_file, int rank, int n_ranks) : rank_(rank), n_ranks_(n_ranks) {
    Check(hostcclStreamCreate(&stream_), "hostcclStreamCreate");
    CHECK_NCCL(ncclCommInitRank(&first_, n_ranks, UniqueIdByFile(id_file, rank), rank));
    second_ = first_;
  }
  void SplitSecond() { CHECK_NCCL(ncclCommSplit(first_, 0, rank_, &second_, nullptr)); }
  void Step(const std::string& kind, int step) {
    if (kind == "accumulation") return Accumulate();
    if (kind == "changing") return Change(step);
    if (kind == "late" && rank_ == 1) Wait(3);
    Backward(first_);
    if (kind == "communicators" && step % kStepsOfSecond == 0) {
      Backward(second_);
      Gather(second_, 8192);
      Gather(second_, 8192);
    }
    for (int batch = 0; kind == "evaluation" && step % kStepsOfEvaluation == 0 && batch < 5; ++batch)
      Gather(first_, 1024);
  }
  void End() {
    if (second_ != first_) CHECK_NCCL(ncclCommDestroy(second_));
    CHECK_NCCL(ncclCommDestroy(first_));
    hostcclStreamDestroy(stream_);
  }

 private:
  static void Wait(long ms) {
    const timespec time{0, ms * 1'000'000};
    ::nanosleep(&time, nullptr);
  }
  void Finish() { Check(hostcclStreamSynchronize(stream_), "hostcclStreamSynchronize"); }
  void Reduce(ncclComm_t comm, size_t elements) {
    CHECK_NCCL(ncclAllReduce(data_.data(), data_.data(), elements, ncclFloat32, ncclMax, comm, stream_));
    Finish();
  }
  void Gather(ncclComm_t comm, size_t elements) {
    CHECK_NCCL(ncclAllGather(data_.data(), all_.data(), elements, ncclFloat32, comm, stream_));
    Finish();
  }
  void Backward(ncclComm_t comm) {
    for (const size_t elements : {16384, 4096, 16384, 65536}) Reduce(comm, elements);
  }
  void Accumulate() {
    for (int micro_step = 0; micro_step < 3; ++micro_step) {
      Gather(first_, 4096);
      Gather(first_, 16384);
    }
    Backward(first_);
  }
  // Makes random calls, the same on all ranks.
  void Change(int step) {
    std::minstd_rand random(static_cast<uint32_t>(step + 1) * 2654435761u);
    for (uint64_t calls = 2 + (random() >> 8) % 9; calls > 0; --calls) {
      const size_t elements = size_t{1024} << (random() >> 8) % 7;
      if ((random() >> 8) % 2 == 0)
        Gather(first_, elements);
      else
        Reduce(first_, elements);
    }
  }

  const int rank_;
  const int n_ranks_;
  ncclComm_t first_ = nullptr;
  ncclComm_t second_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<float> data_ = std::vector<float>(kMostElements);
  std::vector<float> all_ = std::vector<float>(kMostElements * static_cast<size_t>(n_ranks_));
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string kind = FromEnvironment("JOB_KIND");
  Rank rank(argv[1], std::atoi(FromEnvironment("RANK").c_str()),
            std::atoi(FromEnvironment("WORLD_SIZE").c_str()));
  if (kind == "communicators") rank.SplitSecond();
  const int steps = std::atoi(argv[2]);
  for (int step = 0; step < steps; ++step) rank.Step(kind, step);
  rank.End();
}
