// SPDX-License-Identifier: Apache-2.0
// The one-pass algorithms on shaped links inside a node. A rank that reads or writes a peer's memory books
// the link as a message would. The call takes at least the time that the links require.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/src/hostccl/shaped_job.h"
#include "tests/support/spawn_ranks.h"

namespace dynamiccl {
namespace {

using testing::BytesOnLinks;
using testing::FirstStart;
using testing::RankContext;
using testing::SpawnRanks;
using testing::TopologyScope;
using Floats = std::vector<float>;

constexpr int kRanks = 3;
constexpr double kLatencyMs = 5;
constexpr double kBytesPerMs = 20'000;
constexpr const char* kSlowNode =
    "version = 1\nnodes = 1\n[link.intra]\nlatency_us = 5000\nbandwidth_gbps = 0.02\n";
// In elements of one rank's share. It is no multiple of the size of a piece or a cache line.
constexpr size_t kShare = 75'003;

class OnePassLinks : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("NCCL_ALGO", "NVLS", 1); }
  void TearDown() override { ::unsetenv("NCCL_ALGO"); }
};

// Runs `call` on this rank. From the first rank's begin to this rank's end it must take at least the latency
// plus the time of `wire_bytes` on one link.
template <typename Call>
void RunCall(RankContext& rank, FirstStart& begun, double wire_bytes, const Call& call) {
  begun.Note();
  EXPECT_EQ(call(), ncclSuccess);
  EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
  EXPECT_GE(begun.MsSince(), wire_bytes / kBytesPerMs + kLatencyMs) << "rank " << rank.rank;
}

// Checks the bytes on all links together. Rank 0 owns the links; when its call ends, all ranks have ended
// theirs.
void ExpectBytesOnLinks(const RankContext& rank, uint64_t bytes) {
  if (rank.rank == 0) {
    EXPECT_EQ(BytesOnLinks(), bytes);
  }
}

// One link carries the sender's data that the receiver reads, and results that the sender stores.
TEST_F(OnePassLinks, AllReduceTakesWhatItsReadsAndStoresTake) {
  const TopologyScope topology(kSlowNode);
  constexpr size_t kCount = kRanks * kShare;
  FirstStart begun;
  const ncclResult_t result = SpawnRanks(kRanks, [&](RankContext& rank) {
    Floats data(kCount, static_cast<float>(rank.rank + 1));
    // A share has whole cache lines on each channel, so the last rank's share is the smallest.
    const double least_share = static_cast<double>((kShare - size_t{16} * kRanks * 8) * sizeof(float));
    RunCall(rank, begun, 2 * least_share, [&] {
      return ncclAllReduce(data.data(), data.data(), kCount, ncclFloat, ncclSum, rank.comm, rank.stream);
    });
    EXPECT_EQ(data, Floats(kCount, 6));
    // Each rank reads its share from every other rank and stores the result to every other rank.
    ExpectBytesOnLinks(rank, 2 * (kRanks - 1) * kCount * sizeof(float));
  });
  EXPECT_EQ(result, ncclSuccess);
}

TEST_F(OnePassLinks, AllGatherTakesWhatItsReadsTake) {
  const TopologyScope topology(kSlowNode);
  FirstStart begun;
  const ncclResult_t result = SpawnRanks(kRanks, [&](RankContext& rank) {
    const Floats sent(kShare, static_cast<float>(rank.rank));
    Floats all(kRanks * kShare, -1);
    RunCall(rank, begun, kShare * sizeof(float), [&] {
      return ncclAllGather(sent.data(), all.data(), kShare, ncclFloat, rank.comm, rank.stream);
    });
    for (size_t block = 0; block < kRanks; ++block) {
      EXPECT_EQ(all[block * kShare], static_cast<float>(block));
      EXPECT_EQ(all[block * kShare + kShare - 1], static_cast<float>(block));
    }
    ExpectBytesOnLinks(rank, kRanks * (kRanks - 1) * kShare * sizeof(float));
  });
  EXPECT_EQ(result, ncclSuccess);
}

TEST_F(OnePassLinks, ReduceScatterTakesWhatItsReadsTake) {
  const TopologyScope topology(kSlowNode);
  FirstStart begun;
  const ncclResult_t result = SpawnRanks(kRanks, [&](RankContext& rank) {
    const Floats sent(kRanks * kShare, static_cast<float>(rank.rank + 1));
    Floats part(kShare, -1);
    RunCall(rank, begun, kShare * sizeof(float), [&] {
      return ncclReduceScatter(sent.data(), part.data(), kShare, ncclFloat, ncclSum, rank.comm, rank.stream);
    });
    EXPECT_EQ(part, Floats(kShare, 6));
    ExpectBytesOnLinks(rank, kRanks * (kRanks - 1) * kShare * sizeof(float));
  });
  EXPECT_EQ(result, ncclSuccess);
}

// There are two nodes with two ranks each. Each node's links carry the bytes of an AllReduce on one node.
TEST_F(OnePassLinks, TheNodePartOfATreeBetweenNodesIsBookedToo) {
  ::setenv("NCCL_ALGO", "NVLSTree", 1);
  const TopologyScope topology(std::string("version = 1\nnodes = 2\n") +
                               "[link.intra]\nlatency_us = 5000\nbandwidth_gbps = 0.02\n"
                               "[link.inter]\nlatency_us = 1\nbandwidth_gbps = 5\n");
  constexpr size_t kCount = 2 * kShare;
  FirstStart begun;
  const ncclResult_t result = SpawnRanks(4, [&](RankContext& rank) {
    Floats data(kCount, static_cast<float>(rank.rank + 1));
    const double least_share = static_cast<double>((kShare - size_t{16} * 2 * 8) * sizeof(float));
    RunCall(rank, begun, 2 * least_share, [&] {
      return ncclAllReduce(data.data(), data.data(), kCount, ncclFloat, ncclSum, rank.comm, rank.stream);
    });
    EXPECT_EQ(data, Floats(kCount, 10));
  });
  EXPECT_EQ(result, ncclSuccess);
}

}  // namespace
}  // namespace dynamiccl
