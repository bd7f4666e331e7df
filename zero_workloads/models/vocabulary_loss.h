// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary that is divided among the ranks of a tensor group: a rank has the logits of
// its part, and only three numbers a target cross between ranks (Shoeybi et al. 2019, section 3).
#pragma once

#include <ATen/core/Tensor.h>

#include "zero_workloads/parallel/tensor_split.h"

namespace dynamiccl::zero {

// `logits`: fp32 [targets, own part of the vocabulary]; `targets`: int64. In nats, the mean over the targets
// or one value a target (at::Reduction), equal on all ranks; a target of -100 counts nothing, as in torch.
at::Tensor VocabularyLoss(const at::Tensor& logits, const at::Tensor& targets, int64_t reduction,
                          const TensorSplit& split);

}  // namespace dynamiccl::zero
