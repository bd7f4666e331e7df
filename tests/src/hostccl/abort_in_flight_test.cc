// SPDX-License-Identifier: Apache-2.0
// Another thread calls ncclCommAbort while a large one-pass call moves its pieces. The abort ends the call on
// all ranks. Once it has returned, no thread or process touches the buffers of the rank that aborted.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/src/hostccl/shaped_job.h"
#include "tests/support/rounds.h"
#include "tests/support/spawn_ranks.h"
#include "tests/support/test_seed.h"

namespace dynamiccl {
namespace {

using testing::BytesOnLinks;
using testing::RankContext;
using testing::Rounds;
using testing::SpawnRanks;
using testing::TopologyScope;

// Memory that the test can make inaccessible with Close. A later access by any thread ends the test program.
class Fence {
 public:
  explicit Fence(size_t bytes)
      : bytes_(bytes),
        memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(memory_, MAP_FAILED);
  }
  Fence(const Fence&) = delete;
  ~Fence() { ::munmap(memory_, bytes_); }
  float* data() const { return static_cast<float*>(memory_); }
  size_t count() const { return bytes_ / sizeof(float); }
  void Close() const { EXPECT_EQ(::mprotect(memory_, bytes_, PROT_NONE), 0); }

 private:
  size_t bytes_;
  void* memory_;
};

class AbortInFlight : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("NCCL_ALGO", "NVLS", 1); }
  void TearDown() override { ::unsetenv("NCCL_ALGO"); }
};

ncclResult_t AllReduce(RankContext& rank, const Fence& memory) {
  return ncclAllReduce(memory.data(), memory.data(), memory.count(), ncclFloat, ncclSum, rank.comm,
                       rank.stream);
}

// The abort comes at a random moment: before the call starts, while it runs, or after it has ended.
TEST_F(AbortInFlight, NobodyTouchesTheBuffersOnceAbortHasReturned) {
  constexpr size_t kBytes = size_t{8} << 20;
  const unsigned seed = test::TestSeed(1);
  std::mt19937 random(seed);
  for (int round = 0; round < Rounds(24); ++round) {
    const int n = 2 + static_cast<int>(random() % 3);
    const unsigned turns = random() % 2000;
    SCOPED_TRACE(::testing::Message() << "seed " << seed << " round " << round << " n " << n);
    const ncclResult_t ended = SpawnRanks(n, [&](RankContext& rank) {
      const Fence memory(kBytes);
      EXPECT_EQ(AllReduce(rank, memory), ncclSuccess);
      if (rank.rank == 0) {
        ncclComm_t const comm = rank.comm;
        std::thread([&] {
          for (unsigned turn = 0; turn < turns; ++turn) std::this_thread::yield();
          EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
          memory.Close();
        }).join();
        rank.comm = nullptr;
      }
      const ncclResult_t result = hostcclStreamSynchronize(rank.stream);
      EXPECT_TRUE(result == ncclSuccess || result == ncclRemoteError) << result;
    });
    EXPECT_EQ(ended, ncclSuccess);
  }
}

// The links are so slow that the abort comes before the call ends. All ranks learn of the abort, and the rest
// of the call is not carried out.
TEST_F(AbortInFlight, EndsACallThatWaitsForItsPieces) {
  const TopologyScope topology(
      "version = 1\nnodes = 1\n[link.intra]\nlatency_us = 1\nbandwidth_gbps = 0.001\n");
  ::setenv("NCCL_MAX_NCHANNELS", "2", 1);
  constexpr int kRanks = 3;
  // Each link carries 12 MiB at 1 MB/s.
  constexpr size_t kBytes = size_t{18} << 20;
  std::atomic<bool> looked{false};
  const ncclResult_t ended = SpawnRanks(kRanks, [&](RankContext& rank) {
    const Fence memory(kBytes);
    EXPECT_EQ(AllReduce(rank, memory), ncclSuccess);
    if (rank.rank == 1) {
      while (BytesOnLinks() == 0) std::this_thread::yield();
      ncclComm_t const comm = rank.comm;
      std::thread([&] { EXPECT_EQ(ncclCommAbort(comm), ncclSuccess); }).join();
      rank.comm = nullptr;
      memory.Close();
      EXPECT_LT(BytesOnLinks(), 2 * (kRanks - 1) * kBytes) << "the call was not over";
      looked = true;
      looked.notify_all();
    }
    EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclRemoteError);
    looked.wait(false);  // Rank 0 owns the links and must stay until rank 1 has read them.
    if (rank.comm == nullptr) return;
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(rank.comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclRemoteError);
  });
  ::unsetenv("NCCL_MAX_NCHANNELS");
  EXPECT_EQ(ended, ncclSuccess);
}

}  // namespace
}  // namespace dynamiccl
