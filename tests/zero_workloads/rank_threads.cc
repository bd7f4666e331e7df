// SPDX-License-Identifier: Apache-2.0
#include "tests/zero_workloads/rank_threads.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "src/base/reserved_port.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::zero {
namespace {

void RunRank(const RankEnvironment& environment, const GridThreads& threads,
             const std::function<void(Grid&)>& rank) {
  const GridSizes sizes{threads.tensor_degree, threads.shard_group, threads.secondary_group};
  const auto grid = Grid::Create(environment, sizes, threads.stage, JoinSettings{});
  ASSERT_TRUE(grid) << grid.error().message;
  try {
    rank(**grid);
  } catch (const std::exception& failure) {
    ADD_FAILURE() << "rank " << environment.rank << ": " << failure.what();
    (*grid)->Abort();
  }
}

}  // namespace

void RunGridThreads(const GridThreads& threads, const std::function<void(Grid&)>& rank) {
  // The ranks' threads free and allocate tensors all the time. By default, glibc returns the memory of such a
  // thread to the system and asks for it again. This takes a third of a test's processor time.
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
  ::mallopt(M_TOP_PAD, 16 << 20);
  RankEnvironment environment;
  environment.world = threads.ranks;
  environment.address = "127.0.0.1";
  const ReservedPort port = ReservedPort::Reserve().value();
  environment.port = port.number();
  testing::SpawnThreads(threads.ranks, [&](int number) {
    RankEnvironment own = environment;
    own.rank = own.local_rank = number;
    RunRank(own, threads, rank);
  });
}

void RunRankThreads(int ranks, int stage, const std::function<void(ProcessGroup*)>& rank) {
  RunGridThreads({.ranks = ranks, .stage = stage}, [&](Grid& grid) { rank(grid.world()); });
}

}  // namespace dynamiccl::zero
