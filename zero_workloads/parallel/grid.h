// SPDX-License-Identifier: Apache-2.0
// The ranks as a grid of data x tensor: a tensor group computes one replica of the model together (tensor
// parallelism), a data group holds the same slices of all replicas (ZeRO divides over it).
#pragma once

#include <memory>

#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

// Global rank = data rank x tensor degree + tensor rank: a tensor group is of neighbours, which launchers put
// on one machine.
class Grid {
 public:
  // All ranks call it. With a tensor degree of 1 the data group is the world; else both groups are
  // communicators split from it. An error where the degree does not divide the world.
  static Result<std::unique_ptr<Grid>> Create(const RankEnvironment& environment, int tensor_degree,
                                              int zero_stage, const JoinSettings& join);

  // Never null.
  ProcessGroup* world() const { return world_.get(); }
  ProcessGroup* data() const { return data_ == nullptr ? world_.get() : data_.get(); }
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

  std::unique_ptr<ProcessGroup> world_;
  std::unique_ptr<ProcessGroup> data_, tensor_;
};

// Whether a world of this size can be such a grid.
Status CheckTensorDegree(int tensor_degree, int world);

}  // namespace dynamiccl::zero
