// SPDX-License-Identifier: Apache-2.0
// Tests which ranks belong to which group of a grid. The sums that the groups compute show it.
#include "zero_workloads/parallel/grid.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/zero_workloads/rank_threads.h"

namespace dynamiccl::zero {
namespace {

float Reduced(ProcessGroup* group, float value, ncclRedOp_t operation = ncclSum) {
  const at::Tensor tensor = at::full({1}, value);
  group->AwaitOnHost(group->AllReduce(tensor, {}, operation));
  return tensor.const_data_ptr<float>()[0];
}

void ExpectGroups(int world, int tensor_degree) {
  const int data_degree = world / tensor_degree;
  RunGridThreads({world, tensor_degree}, [&](Grid& grid) {
    const int rank = grid.world()->rank();
    EXPECT_EQ(grid.data()->world(), data_degree);
    EXPECT_EQ(grid.tensor_degree(), tensor_degree);
    EXPECT_EQ(grid.data()->rank() * tensor_degree + grid.tensor_rank(), rank);
    // Each rank adds its own power of two, so a sum shows which ranks took part.
    const float own = static_cast<float>(1 << rank);
    float tensor_members = 0.0f, data_members = 0.0f;
    for (int other = 0; other < world; ++other) {
      if (other / tensor_degree == rank / tensor_degree) tensor_members += static_cast<float>(1 << other);
      if (other % tensor_degree == rank % tensor_degree) data_members += static_cast<float>(1 << other);
    }
    EXPECT_EQ(Reduced(grid.data(), own), data_members);
    EXPECT_EQ(Reduced(grid.world(), own), static_cast<float>((1 << world) - 1));
    if (tensor_degree == 1) {
      EXPECT_EQ(grid.tensor(), nullptr);
      return;
    }
    EXPECT_EQ(Reduced(grid.tensor(), own), tensor_members);
    const int last = rank / tensor_degree * tensor_degree + tensor_degree - 1;
    EXPECT_EQ(Reduced(grid.tensor(), static_cast<float>(rank), ncclMax), static_cast<float>(last));
  });
}

TEST(Grid, GroupsHoldTheRanksOfTheirRowOrColumn) {
  for (const auto& [world, tensor_degree] :
       {std::pair{1, 1}, {3, 1}, {2, 2}, {4, 2}, {6, 3}, {6, 2}, {8, 4}}) {
    SCOPED_TRACE(fmt::format("{} ranks, tensor degree {}", world, tensor_degree));
    ExpectGroups(world, tensor_degree);
  }
}

void ExpectShardGroups(int world, const GridSizes& sizes) {
  RunGridThreads({world, sizes.tensor, 3, sizes.shard, sizes.secondary}, [&](Grid& grid) {
    const int rank = grid.world()->rank(), data_rank = rank / sizes.tensor;
    float shard = 0.0f, replicas = 0.0f, secondary = 0.0f;
    for (int other = 0; other < world; ++other) {
      if (other % sizes.tensor != rank % sizes.tensor) continue;
      const int other_data = other / sizes.tensor;
      const float member = static_cast<float>(1 << other);
      if (other_data / sizes.shard == data_rank / sizes.shard) shard += member;
      if (other_data % sizes.shard == data_rank % sizes.shard) replicas += member;
      if (other_data / sizes.secondary == data_rank / sizes.secondary) secondary += member;
    }
    const float own = static_cast<float>(1 << rank);
    EXPECT_EQ(Reduced(grid.shard(), own), shard);
    EXPECT_EQ(grid.shard()->rank(), data_rank % sizes.shard);
    EXPECT_EQ(Reduced(grid.secondary(), own), secondary);
    EXPECT_EQ(grid.secondary()->rank(), data_rank % sizes.secondary);
    if (sizes.shard * sizes.tensor == world) {
      EXPECT_EQ(grid.replicas(), nullptr);
      return;
    }
    EXPECT_EQ(Reduced(grid.replicas(), own), replicas);
    EXPECT_EQ(grid.replicas()->rank(), data_rank / sizes.shard);
  });
}

TEST(Grid, ShardGroupsAreNeighboursAndReplicasTheRest) {
  ExpectShardGroups(4, {1, 2, 2});
  ExpectShardGroups(6, {1, 3, 1});
  ExpectShardGroups(6, {1, 2, 2});
  ExpectShardGroups(4, {1, 4, 2});
  ExpectShardGroups(8, {2, 2, 1});
}

TEST(Grid, DegreeThatDoesNotDivideTheWorldIsRefused) {
  EXPECT_TRUE(CheckTensorDegree(4, 8));
  for (const auto& [tensor_degree, world] : {std::pair{3, 4}, {8, 4}, {0, 4}}) {
    const Status status = CheckTensorDegree(tensor_degree, world);
    ASSERT_FALSE(status);
    EXPECT_THAT(Describe(status.error()), ::testing::HasSubstr("does not divide"));
  }
  EXPECT_THAT(Describe(CheckTensorDegree(8, 4).error()), ::testing::HasSubstr("start 8 ranks"));
}

}  // namespace
}  // namespace dynamiccl::zero
