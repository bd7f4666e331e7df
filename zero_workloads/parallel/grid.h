// SPDX-License-Identifier: Apache-2.0
// Arranges the ranks as a grid of data x tensor. A tensor group computes one replica of the model together
// (tensor parallelism). The ranks of a data group hold the same slice of all replicas. ZeRO partitions over
// the data group. With hybrid sharding, the data group is divided into shard groups, and ZeRO partitions over
// each of them.
//
// Example with 8 ranks, tensor degree 2 and shard groups of 2:
//
//   tensor groups   {0 1} {2 3} {4 5} {6 7}
//   data groups     {0 2 4 6} {1 3 5 7}
//   shard groups    {0 2} {4 6} {1 3} {5 7}      replica groups  {0 4} {2 6} {1 5} {3 7}
#pragma once

#include <memory>
#include <vector>

#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

// The number of ranks in a group of each kind.
struct GridSizes {
  int tensor = 1;
  // Hybrid sharding: number of data ranks that together hold one copy of the optimizer's states. 0 means all
  // data ranks.
  int shard = 0;
  // Stage 3: number of ranks of a shard group that together hold a second copy of the parameters. 0 means
  // that there is no second copy.
  int secondary = 0;
};

// The communicators of one rank. The training process owns the grid and uses it on its training thread.
// Global rank = data rank * tensor degree + tensor rank. The ranks of a tensor group are thus neighbours,
// which launchers place on one machine. The data ranks of a shard group or a secondary group are neighbours
// as well.
class Grid {
 public:
  // Creates the groups of this rank; all ranks call the function together. With a tensor degree of 1 the data
  // group is the world. Otherwise data and tensor groups are communicators split from the world. Smaller
  // shard groups, their replica groups, and secondary groups are split from the data group. It is an error if
  // a size does not divide its group, or if a rank does not join.
  static Result<std::unique_ptr<Grid>> Create(const RankEnvironment& environment, const GridSizes& sizes,
                                              int zero_stage, const JoinSettings& join);

  // The group of all ranks; never null. All groups live as long as the grid.
  ProcessGroup* world() const { return world_.get(); }
  ProcessGroup* data() const { return data_ == nullptr ? world_.get() : data_.get(); }
  // The group over which ZeRO partitions: the data group, or a group of neighbours in it.
  ProcessGroup* shard() const { return shard_ == nullptr ? data() : shard_.get(); }
  // The ranks of the data group that hold the same shard; null if the shard group is the data group.
  ProcessGroup* replicas() const { return replicas_.get(); }
  // The ranks with the second copy of the parameters; null if there is none.
  ProcessGroup* secondary() const { return secondary_.get(); }
  // The tensor group; null if the tensor degree is 1.
  ProcessGroup* tensor() const { return tensor_.get(); }

  int tensor_degree() const { return tensor_ == nullptr ? 1 : tensor_->world(); }
  int tensor_rank() const { return tensor_ == nullptr ? 0 : tensor_->rank(); }

  // Sets the step in the labels of all later calls of all groups.
  void SetStep(int64_t step);
  // The sum of ProcessGroup::sent_bytes over all groups.
  int64_t sent_bytes() const;
  // Aborts all communicators, as ProcessGroup::Abort does. Nothing else may be called afterwards.
  void Abort();

 private:
  explicit Grid(std::unique_ptr<ProcessGroup> world) : world_(std::move(world)) {}
  Status SplitData(const GridSizes& sizes);
  // All groups that exist. Tensor groups come first and the world last.
  std::vector<ProcessGroup*> Groups() const;

  std::unique_ptr<ProcessGroup> world_;
  std::unique_ptr<ProcessGroup> data_, tensor_;
  std::unique_ptr<ProcessGroup> shard_, replicas_, secondary_;
};

// Returns an error, with a hint, if a world of this size cannot be divided into tensor groups of this degree.
Status CheckTensorDegree(int tensor_degree, int world);
// Returns an error that lists the possible sizes if a data group of this size cannot be divided in this way.
Status CheckShardGroups(const GridSizes& sizes, int data_ranks);

}  // namespace dynamiccl::zero
