// SPDX-License-Identifier: Apache-2.0
// The communication of a tensor group in the forward and the backward pass: Megatron-LM's f and g operators
// (Shoeybi et al. 2019, section 3), and with sequence parallelism those of Korthikanti et al. 2022, section
// 4.2.2. Activations are [batch, sequence, width]. All ranks of the group must call the same functions in the
// same order.
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

// The division of a model's layers among ranks. The group must outlive the model.
struct TensorSplit {
  // The ranks that share each layer. Null means that one rank computes whole layers.
  ProcessGroup* group = nullptr;
  // If true, a rank holds 1/degree of the sequence between divided layers, and thus 1/degree of the
  // activations.
  bool sequence_parallel = false;

  int64_t degree() const { return group == nullptr ? 1 : group->world(); }
  int64_t rank() const { return group == nullptr ? 0 : group->rank(); }
  // This rank's share of `count` items that the group divides evenly.
  int64_t share(int64_t count) const { return count / degree(); }
  // Index of the first item of this rank's share.
  int64_t share_begin(int64_t count) const { return rank() * share(count); }
  bool splits_sequence() const { return group != nullptr && sequence_parallel; }
};

// Enters a divided layer: computes input W^T + b with this rank's rows of W and b, [batch, sequence, outputs
// / degree]. The input is equal on all ranks. With a split sequence the input is this rank's slice, and the
// function gathers the rest. In the backward pass the input's gradient is summed over the ranks, while the
// weight's gradient is computed.
at::Tensor ColumnParallelProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                 const TensorSplit& split);

// Leaves a divided layer: returns the sum of all ranks' `partial`. With a split sequence it returns this
// rank's slice of the sum. `partial` may be overwritten.
at::Tensor SumOfPartials(const at::Tensor& partial, const TensorSplit& split);

}  // namespace dynamiccl::zero
