// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary that is divided among the ranks of a tensor group. A rank has the logits of
// its part. For each target, ranks exchange only three numbers (Shoeybi et al. 2019, section 3).
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/parallel/tensor_split.h"

namespace dynamiccl::zero {

// `logits` are fp32 [targets, own part of the vocabulary], `targets` int64 [targets] with indices into the
// whole vocabulary. Returns the loss in nats, equal on all ranks: the mean over the targets, or one value per
// target, as `reduction` (at::Reduction) says. A target of -100 counts as absent, as in torch. All ranks of
// the group call the function; without a group it is torch's cross entropy.
at::Tensor VocabularyLoss(const at::Tensor& logits, const at::Tensor& targets, int64_t reduction,
                          const TensorSplit& split);

}  // namespace dynamiccl::zero
