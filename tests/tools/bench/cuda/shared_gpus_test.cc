// SPDX-License-Identifier: Apache-2.0
// NCCL must see processes that share a GPU as different hosts. No two such processes of any hosts may get the
// same host id. A process with a GPU of its own must keep the real id.
#include "tools/bench/cuda/shared_gpus.h"

#include <gtest/gtest.h>

#include <set>

namespace dynamiccl::cuda {
namespace {

TEST(SharedGpus, RanksWithAGpuEachAreLeftAlone) {
  for (const int threads : {1, 2, 4}) {
    const auto host = HostIdOnSharedGpus({.n_local_ranks = 4, .ranks_in_process = threads}, 4);
    ASSERT_TRUE(host);
    EXPECT_FALSE(*host);
  }
}

TEST(SharedGpus, ProcessesOfSeveralHostsAllDiffer) {
  constexpr int kHosts = 3, kRanksAHost = 4;
  std::set<std::string> ids;
  for (int rank = 0; rank < kHosts * kRanksAHost; ++rank) {
    const RankPlace place{.rank = rank, .local_rank = rank % kRanksAHost, .n_local_ranks = kRanksAHost};
    const auto host = HostIdOnSharedGpus(place, 2);
    ASSERT_TRUE(host && *host);
    ids.insert(**host);
  }
  EXPECT_EQ(ids.size(), size_t{kHosts * kRanksAHost});
}

// Two processes with two threads each run on two GPUs. Each process has both GPUs, as if it were a host of
// its own.
TEST(SharedGpus, ThreadsAreCountedAsRanks) {
  const auto host = HostIdOnSharedGpus({.n_local_ranks = 4, .ranks_in_process = 2}, 2);
  ASSERT_TRUE(host);
  EXPECT_TRUE(*host);
}

TEST(SharedGpus, ThreadsOfOneProcessCannotShareAGpu) {
  const auto host = HostIdOnSharedGpus({.n_local_ranks = 4, .ranks_in_process = 4}, 2);
  ASSERT_FALSE(host);
  EXPECT_NE(host.error().message.find("4 ranks as threads of one process on 2 GPU"), std::string::npos);
  EXPECT_NE(host.error().hint.find("-g instead of -t"), std::string::npos);
}

}  // namespace
}  // namespace dynamiccl::cuda
