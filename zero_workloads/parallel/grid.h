// SPDX-License-Identifier: Apache-2.0
// The ranks as a grid of data x tensor: a tensor group computes one replica of the model together (tensor
// parallelism), a data group holds the same slices of all replicas. ZeRO divides over the data group, or with
// hybrid sharding over each of the shard groups that make it up.
#pragma once

#include <memory>
#include <vector>

#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

// Ranks in a group of each kind.
struct GridSizes {
  int tensor = 1;
  // Hybrid sharding: data ranks that hold one copy of the optimizer's states together; 0: all of them.
  int shard = 0;
  // Stage 3: ranks of a shard group that hold a second copy of the parameters together; 0: there is none.
  int secondary = 0;
};

// Global rank = data rank x tensor degree + tensor rank: a tensor group is of neighbours, which launchers put
// on one machine; so are a shard group's data ranks, and those of a secondary group.
class Grid {
 public:
  // All ranks call it. With a tensor degree of 1 the data group is the world; else both groups are
  // communicators split from it. Shard groups that are smaller, with their replica groups, and secondary
  // groups are split from the data group. An error where a size does not divide what it must.
  static Result<std::unique_ptr<Grid>> Create(const RankEnvironment& environment, const GridSizes& sizes,
                                              int zero_stage, const JoinSettings& join);

  // Never null.
  ProcessGroup* world() const { return world_.get(); }
  ProcessGroup* data() const { return data_ == nullptr ? world_.get() : data_.get(); }
  // Over which ZeRO divides: the data group, or neighbours of it.
  ProcessGroup* shard() const { return shard_ == nullptr ? data() : shard_.get(); }
  // The ranks of the data group that hold the same shard; null where the shard group is the data group.
  ProcessGroup* replicas() const { return replicas_.get(); }
  // Null where there is no second copy.
  ProcessGroup* secondary() const { return secondary_.get(); }
  // Null where the tensor degree is 1.
  ProcessGroup* tensor() const { return tensor_.get(); }

  int tensor_degree() const { return tensor_ == nullptr ? 1 : tensor_->world(); }
  int tensor_rank() const { return tensor_ == nullptr ? 0 : tensor_->rank(); }

  // The step that the labels of all groups name from now on.
  void SetStep(int64_t step);
  // Over all groups, as ProcessGroup::sent_bytes.
  int64_t sent_bytes() const;
  // Gives all communicators up, as ProcessGroup::Abort.
  void Abort();

 private:
  explicit Grid(std::unique_ptr<ProcessGroup> world) : world_(std::move(world)) {}
  Status SplitData(const GridSizes& sizes);
  // All that there are; those in which ranks wait most first.
  std::vector<ProcessGroup*> Groups() const;

  std::unique_ptr<ProcessGroup> world_;
  std::unique_ptr<ProcessGroup> data_, tensor_;
  std::unique_ptr<ProcessGroup> shard_, replicas_, secondary_;
};

// Whether a world of this size can be such a grid.
Status CheckTensorDegree(int tensor_degree, int world);
// Whether a data group of this size can be divided so.
Status CheckShardGroups(const GridSizes& sizes, int data_ranks);

}  // namespace dynamiccl::zero
