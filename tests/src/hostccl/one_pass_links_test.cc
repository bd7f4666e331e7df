// SPDX-License-Identifier: Apache-2.0
// The one-pass algorithms on shaped links inside a node: a rank that reads or writes a peer's memory books
// the link as a message would, and the call ends no earlier than the links say.
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
// Of a rank's share, not a whole number of pieces or cache lines.
constexpr size_t kShare = 75'003;

class OnePassLinks : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("NCCL_ALGO", "NVLS", 1); }
  void TearDown() override { ::unsetenv("NCCL_ALGO"); }
};

// `call` on all ranks; how long it took from the first rank's begin to this rank's end.
template <typename Call>
void RunCall(RankContext& rank, FirstStart& begun, double wire_bytes, const Call& call) {
  begun.Note();
  EXPECT_EQ(call(), ncclSuccess);
  EXPECT_EQ(hostcclStreamSynchronize(rank.stream), ncclSuccess);
  EXPECT_GE(begun.MsSince(), wire_bytes / kBytesPerMs + kLatencyMs) << "rank " << rank.rank;
}

// Of all links. Rank 0 owns them, and its end of the call says that all have ended it.
void ExpectBytesOnLinks(const RankContext& rank, uint64_t bytes) {
  if (rank.rank == 0) {
    EXPECT_EQ(BytesOnLinks(), bytes);
  }
}

// What one link carries: the sender's data that the receiver reads, and results that the sender stores.
TEST_F(OnePassLinks, AllReduceTakesWhatItsReadsAndStoresTake) {
  const TopologyScope topology(kSlowNode);
  constexpr size_t kCount = kRanks * kShare;
  FirstStart begun;
  const ncclResult_t result = SpawnRanks(kRanks, [&](RankContext& rank) {
    Floats data(kCount, static_cast<float>(rank.rank + 1));
    // Shares are whole cache lines on each channel: the last rank's is the smallest.
    const double least_share = static_cast<double>((kShare - size_t{16} * kRanks * 8) * sizeof(float));
    RunCall(rank, begun, 2 * least_share, [&] {
      return ncclAllReduce(data.data(), data.data(), kCount, ncclFloat, ncclSum, rank.comm, rank.stream);
    });
    EXPECT_EQ(data, Floats(kCount, 6));
    // Each rank reads its share from every other and stores it to every other.
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

// Two nodes of two ranks: every node's links carry what one node's AllReduce would put on them.
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
