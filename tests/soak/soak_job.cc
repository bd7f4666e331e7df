// SPDX-License-Identifier: Apache-2.0
// One rank of the job that `soak` disturbs. It makes random collectives on one communicator after another,
// and compares each with the serial reference. When a rank is lost, the others abort the communicator. All
// continue with the rank that takes its place. RANK and WORLD_SIZE come from the environment.
//   soak_job <folder> <generation>
// The file <folder>/state.<rank> holds what this rank has done (soak_state.h). The job ends when
// <folder>/stop exists. Exit code 0: all results were right; 5: a wrong result; 4: NCCL failed in another
// way.
#include <sys/mman.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

#include "src/nccl_abi/host_stream.h"
#include "tests/integration/unique_id_by_file.h"
#include "tests/soak/soak_state.h"
#include "tests/support/serial_reference.h"

namespace {

using dynamiccl::Collective;
using dynamiccl::ReduceOp;
using dynamiccl::testing::Reduce;
using dynamiccl::testing::SerialReference;
using dynamiccl::testing::SoakState;
using dynamiccl::testing::Values;

constexpr size_t kMaxElements = 20'000;
// The ranks ask whether the job must end after this many calls.
constexpr int kCallsOfARound = 50;
// The communicator is split after this many rounds.
constexpr int kRoundsOfASplit = 200;

constexpr Collective kCollectives[] = {Collective::kAllReduce, Collective::kAllGather,
                                       Collective::kReduceScatter, Collective::kBroadcast,
                                       Collective::kReduce};
constexpr std::pair<ReduceOp, ncclRedOp_t> kOps[] = {{ReduceOp::kSum, ncclSum},
                                                     {ReduceOp::kMax, ncclMax},
                                                     {ReduceOp::kMin, ncclMin},
                                                     {ReduceOp::kAvg, ncclAvg}};

struct Job {
  std::string folder;
  int rank = 0;
  int n_ranks = 1;
  SoakState* state = nullptr;
};

struct RankCommunicator {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int rank = 0;
  int n_ranks = 1;
};

struct Call {
  Collective collective;
  std::pair<ReduceOp, ncclRedOp_t> op;
  int root = 0;
  size_t count = 0;  // the collective's count parameter
  uint32_t data = 0;
};

Call NextCall(std::minstd_rand& random, int n_ranks) {
  Call call{.collective = kCollectives[random() % 5], .op = kOps[random() % 4]};
  call.root = static_cast<int>(random() % static_cast<unsigned>(n_ranks));
  const bool parts =
      call.collective == Collective::kAllGather || call.collective == Collective::kReduceScatter;
  const size_t most = kMaxElements / (parts ? static_cast<size_t>(n_ranks) : 1);
  // All orders of magnitude, from one element on, are about equally likely.
  call.count = 1 + random() % (most >> random() % 12);
  call.data = static_cast<uint32_t>(random());
  return call;
}

// Returns small integers, so that a sum in any order gives the same bits.
Values InputOf(const Call& call, size_t elements, int rank) {
  Values values(elements);
  for (size_t i = 0; i < elements; ++i)
    values[i] = static_cast<double>((call.data + 7 * i + 3 * static_cast<size_t>(rank)) % 64);
  return values;
}

ncclResult_t Issue(const Call& call, const RankCommunicator& on, const float* from, float* to) {
  switch (call.collective) {
    case Collective::kAllReduce:
      return ncclAllReduce(from, to, call.count, ncclFloat32, call.op.second, on.comm, on.stream);
    case Collective::kAllGather:
      return ncclAllGather(from, to, call.count, ncclFloat32, on.comm, on.stream);
    case Collective::kReduceScatter:
      return ncclReduceScatter(from, to, call.count, ncclFloat32, call.op.second, on.comm, on.stream);
    case Collective::kBroadcast:
      return ncclBroadcast(from, to, call.count, ncclFloat32, call.root, on.comm, on.stream);
    default:
      return ncclReduce(from, to, call.count, ncclFloat32, call.op.second, call.root, on.comm, on.stream);
  }
}

// Makes a call and returns its result. If an element is wrong, ends the process.
ncclResult_t MakeAndCheck(const Call& call, const RankCommunicator& on) {
  const auto n = static_cast<size_t>(on.n_ranks);
  const size_t elements = call.count * (call.collective == Collective::kReduceScatter ? n : 1);
  std::vector<Values> inputs;
  for (int rank = 0; rank < on.n_ranks; ++rank) inputs.push_back(InputOf(call, elements, rank));
  const Values& mine = inputs[static_cast<size_t>(on.rank)];
  const std::vector<float> from(mine.begin(), mine.end());
  std::vector<float> to(call.count * (call.collective == Collective::kAllGather ? n : 1));
  ncclResult_t result = Issue(call, on, from.data(), to.data());
  if (result == ncclSuccess) result = hostcclStreamSynchronize(on.stream);
  if (result != ncclSuccess) return result;
  // For an AllReduce the reference of parts is not asked: as many elements as there are.
  const Values expected = SerialReference(call.collective, call.op.first, call.root, inputs, on.rank);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (to[i] == static_cast<float>(expected[i])) continue;
    std::fprintf(stderr, "soak_job: rank %d: %s of %zu: element %zu is %g, not %g\n", on.rank,
                 std::string(dynamiccl::Name(call.collective)).c_str(), call.count, i,
                 static_cast<double>(to[i]), expected[i]);
    std::_Exit(5);
  }
  return ncclSuccess;
}

// Splits the communicator into halves and makes one call in each half.
ncclResult_t SplitAndUse(const RankCommunicator& on, std::minstd_rand& random) {
  RankCommunicator half{.stream = on.stream, .rank = on.rank / 2, .n_ranks = on.n_ranks / 2};
  ncclResult_t result = ncclCommSplit(on.comm, on.rank % 2, on.rank, &half.comm, nullptr);
  if (result != ncclSuccess) return result;
  result = MakeAndCheck(NextCall(random, half.n_ranks), half);
  const ncclResult_t end = result == ncclSuccess ? ncclCommDestroy(half.comm) : ncclCommAbort(half.comm);
  return result == ncclSuccess ? end : result;
}

// Sets `ends` to whether rank 0 has seen that the job must end. All ranks get the same answer.
ncclResult_t AskForEnd(const Job& job, const RankCommunicator& on, bool& ends) {
  float stop = job.rank == 0 && std::filesystem::exists(job.folder + "/stop") ? 1 : 0;
  ncclResult_t result = ncclBroadcast(&stop, &stop, 1, ncclFloat32, 0, on.comm, on.stream);
  if (result == ncclSuccess) result = hostcclStreamSynchronize(on.stream);
  ends = stop != 0;
  return result;
}

// Makes calls until the job must end or a call fails.
ncclResult_t UseCommunicator(const Job& job, const RankCommunicator& on, uint64_t seed) {
  std::minstd_rand random(static_cast<unsigned>(seed));
  for (int round = 0;; ++round) {
    for (int i = 0; i < kCallsOfARound; ++i) {
      const ncclResult_t result = MakeAndCheck(NextCall(random, on.n_ranks), on);
      if (result != ncclSuccess) return result;
      job.state->calls.fetch_add(1);
    }
    if (round % kRoundsOfASplit == 0) {
      const ncclResult_t result = SplitAndUse(on, random);
      if (result != ncclSuccess) return result;
    }
    bool ends = false;
    const ncclResult_t result = AskForEnd(job, on, ends);
    if (result != ncclSuccess || ends) return result;
  }
}

// Creates a communicator and uses it until its end. Returns whether the job must end.
bool LiveThrough(const Job& job, uint64_t generation) {
  RankCommunicator on{.rank = job.rank, .n_ranks = job.n_ranks};
  CHECK_NCCL(hostcclStreamCreate(&on.stream));
  const ncclUniqueId id = UniqueIdByFile(job.folder + "/id." + std::to_string(generation), job.rank);
  ncclResult_t result = ncclCommInitRank(&on.comm, job.n_ranks, id, job.rank);
  if (result == ncclSuccess) {
    job.state->generation.store(generation);
    result = UseCommunicator(job, on, generation + 1);
    CHECK_NCCL(result == ncclSuccess ? ncclCommDestroy(on.comm) : ncclCommAbort(on.comm));
  }
  CHECK_NCCL(hostcclStreamDestroy(on.stream));
  if (result != ncclSuccess && result != ncclRemoteError) Fail("another error than a lost rank", result);
  return result == ncclSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Job job{.folder = argv[1]};
  job.rank = std::atoi(std::getenv("RANK"));
  job.n_ranks = std::atoi(std::getenv("WORLD_SIZE"));
  job.state = SoakState::Open(job.folder, job.rank);
  for (uint64_t generation = std::strtoull(argv[2], nullptr, 10); !LiveThrough(job, generation);)
    ++generation;
  return 0;
}
