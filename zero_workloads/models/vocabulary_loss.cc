// SPDX-License-Identifier: Apache-2.0
// The algorithm, with the vocabulary's columns divided among ranks:
//
//   m      = max over ranks and columns of the logits       (one AllReduce, maximum)
//   s      = sum over ranks and columns of exp(logit - m)   (one AllReduce, together with t)
//   t      = logit of the target - m, 0 on ranks without it
//   loss   = log s - t
//   d loss / d logit = exp(logit - m) / s, less 1 at the target
//
// Shifting by the maximum keeps the exponentials in range. The backward pass needs no communication.
#include "zero_workloads/models/vocabulary_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

namespace dynamiccl::zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A target with this value does not count: torch's default `ignore_index`.
constexpr int64_t kIgnoredTarget = -100;
constexpr CallLabel kLabel{DYNAMICCL_PHASE_FORWARD, DYNAMICCL_ROLE_ACTIVATION};

// The largest logit of each target over all ranks: [targets, 1]. A collective call.
at::Tensor LargestLogit(const at::Tensor& logits, ProcessGroup* group) {
  const at::Tensor largest = logits.amax(-1, /*keepdim=*/true);
  group->Await(group->AllReduce(largest, kLabel, ncclMax));
  return largest;
}

// The loss of each target, [targets], as an autograd function.
struct VocabularyLossFunction : torch::autograd::Function<VocabularyLossFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& targets,
                            const TensorSplit& split) {
    const int64_t own = logits.size(1);
    const at::Tensor column = targets - split.rank() * own;
    const at::Tensor elsewhere = column.lt(0).logical_or(column.ge(own));
    const at::Tensor own_column = column.masked_fill(elsewhere, 0).unsqueeze(-1);
    const at::Tensor shifted = logits - LargestLogit(logits, split.group);
    const at::Tensor target_logit = shifted.gather(1, own_column).squeeze(-1).masked_fill(elsewhere, 0);
    const at::Tensor exponentials = shifted.exp_();
    // One AllReduce sums both the exponentials' sum and the target's logit over the ranks.
    const at::Tensor sums = at::stack({exponentials.sum(-1), target_logit});
    split.group->Await(split.group->AllReduce(sums, kLabel));
    const at::Tensor ignored = targets.eq(kIgnoredTarget);
    context->save_for_backward({exponentials.div_(sums[0].unsqueeze(-1)), own_column, elsewhere, ignored});
    return (sums[0].log() - sums[1]).masked_fill(ignored, 0);
  }

  // The gradient: softmax, minus 1 at the target, times the incoming gradient. Each rank has all values for
  // its own columns.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &softmax = saved[0], &own_column = saved[1], &elsewhere = saved[2], &ignored = saved[3];
    const at::Tensor weight = gradients[0].masked_fill(ignored, 0).unsqueeze(-1);
    at::Tensor gradient = softmax * weight;
    gradient.scatter_add_(1, own_column, -weight.masked_fill(elsewhere.unsqueeze(-1), 0));
    return {gradient, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor VocabularyLoss(const at::Tensor& logits, const at::Tensor& targets, int64_t reduction,
                          const TensorSplit& split) {
  if (split.group == nullptr) return at::cross_entropy_loss(logits, targets, {}, reduction);
  const at::Tensor losses = VocabularyLossFunction::apply(logits, targets, split);
  if (reduction == at::Reduction::None) return losses;
  return losses.sum() / targets.ne(kIgnoredTarget).sum();
}

}  // namespace dynamiccl::zero
