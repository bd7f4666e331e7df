// SPDX-License-Identifier: Apache-2.0
// What crosses between the ranks of a tensor group in the forward and the backward pass (Shoeybi et al. 2019,
// section 3; with sequence parallelism Korthikanti et al. 2022, section 4.2.2). Activations are
// [batch, sequence, width]. All ranks call the same functions in the same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

// How a model's layers are divided.
struct TensorSplit {
  ProcessGroup* group = nullptr;  // null: one rank computes the layers whole
  // Between the divided layers a rank has 1/degree of the sequence, and of the activations.
  bool sequence_parallel = false;

  int64_t degree() const { return group == nullptr ? 1 : group->world(); }
  int64_t rank() const { return group == nullptr ? 0 : group->rank(); }
  // The own ones of `count` things that the group divides.
  int64_t share(int64_t count) const { return count / degree(); }
  int64_t share_begin(int64_t count) const { return rank() * share(count); }
  bool splits_sequence() const { return group != nullptr && sequence_parallel; }
};

// Into a divided layer: input W^T + b with the own rows of W and b. Every rank's input is the same; with a
// split sequence it is the own slice, and the layer sees all of them. The input's gradient is summed over the
// ranks while that of the weight is computed.
at::Tensor ColumnParallelProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                 const TensorSplit& split);

// Out of a divided layer: the sum of all ranks' `partial`; with a split sequence the own slice of the sum.
// `partial` may be overwritten.
at::Tensor SumOfPartials(const at::Tensor& partial, const TensorSplit& split);

}  // namespace dynamiccl::zero
