// SPDX-License-Identifier: Apache-2.0
// Communication by operation, without and with a split sequence:
//
//                           forward                     backward
//   ColumnParallelProduct   nothing  / AllGather        AllReduce of the gradient / AllGather, ReduceScatter
//   SumOfPartials           AllReduce / ReduceScatter   nothing / AllGather
//
// Sums in the backward pass overlap with the product that computes the weight's gradient.
#include "zero_workloads/parallel/tensor_split.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

namespace dynamiccl::zero {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Labels of the exchanges in traces.
constexpr CallLabel kForward{DYNAMICCL_PHASE_FORWARD, DYNAMICCL_ROLE_ACTIVATION};
constexpr CallLabel kBackward{DYNAMICCL_PHASE_BACKWARD, DYNAMICCL_ROLE_ACTIVATION};

// Saves the split in the autograd context, which stores only plain values. The group outlives every backward
// pass.
void Keep(AutogradContext* context, const TensorSplit& split) {
  context->saved_data["group"] = reinterpret_cast<int64_t>(split.group);
  context->saved_data["sequence_parallel"] = split.sequence_parallel;
}

TensorSplit Kept(AutogradContext* context) {
  return {reinterpret_cast<ProcessGroup*>(context->saved_data["group"].toInt()),
          context->saved_data["sequence_parallel"].toBool()};
}

// An AllGather along the sequence that is in progress; the object keeps its tensors alive.
class SequenceGather {
 public:
  SequenceGather(const at::Tensor& slice, ProcessGroup* group, const CallLabel& label)
      : slice_(slice.contiguous()), group_(group) {
    gathered_ = at::empty({group->world(), slice.size(0), slice.size(1), slice.size(2)}, slice.options());
    pending_ = group->AllGather(slice_, gathered_, label);
  }

  // Returns [batch, sequence, width]. NCCL's result has the ranks outermost, but the batch must come before
  // the sequence.
  at::Tensor Await() {
    group_->Await(pending_);
    return gathered_.transpose(0, 1).reshape({slice_.size(0), -1, slice_.size(2)});
  }

 private:
  at::Tensor slice_, gathered_;
  ProcessGroup* group_;
  PendingCollective pending_;
};

// A sum over the ranks that is in progress. Without a split sequence, every rank gets the whole sum and
// `partial` is overwritten. With a split sequence, every rank gets its slice of the sum.
class PartialSum {
 public:
  PartialSum(const at::Tensor& partial, const TensorSplit& split, const CallLabel& label)
      : group_(split.group) {
    if (!split.splits_sequence()) {
      input_ = result_ = partial.contiguous();
      pending_ = group_->AllReduce(result_, label);
      return;
    }
    const int64_t batch = partial.size(0), slice = partial.size(1) / split.degree(), width = partial.size(2);
    input_ = partial.view({batch, split.degree(), slice, width}).transpose(0, 1).contiguous();
    result_ = at::empty({batch, slice, width}, partial.options());
    pending_ = group_->ReduceScatter(input_, result_, label);
  }

  at::Tensor Await() {
    group_->Await(pending_);
    return result_;
  }

 private:
  at::Tensor input_, result_;
  ProcessGroup* group_;
  PendingCollective pending_;
};

at::Tensor Rows(const at::Tensor& activations) {
  return activations.reshape({-1, activations.size(-1)});
}

// ColumnParallelProduct as an autograd function.
struct ColumnParallelFunction : torch::autograd::Function<ColumnParallelFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const TensorSplit& split) {
    // With a split sequence only this rank's slice is kept; the backward pass gathers the rest again.
    context->save_for_backward({input, weight});
    Keep(context, split);
    if (!split.splits_sequence()) return at::linear(input, weight, bias);
    return at::linear(SequenceGather(input, split.group, kForward).Await(), weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1], gradient = Rows(gradients[0]);
    const TensorSplit split = Kept(context);
    std::optional<SequenceGather> whole_input;
    if (split.splits_sequence()) whole_input.emplace(input, split.group, kBackward);
    const at::Tensor partial =
        at::mm(gradient, weight).view({input.size(0), gradients[0].size(1), input.size(2)});
    PartialSum input_gradient(partial, split, kBackward);
    const at::Tensor whole = whole_input ? whole_input->Await() : input;
    const at::Tensor weight_gradient = at::mm(gradient.t(), Rows(whole));
    const at::Tensor bias_gradient = gradient.sum(0);
    return {input_gradient.Await(), weight_gradient, bias_gradient, at::Tensor()};
  }
};

// SumOfPartials as an autograd function.
struct PartialSumFunction : torch::autograd::Function<PartialSumFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& partial, const TensorSplit& split) {
    Keep(context, split);
    const at::Tensor sum = PartialSum(partial, split, kForward).Await();
    if (sum.is_same(partial)) context->mark_dirty({partial});
    return sum;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TensorSplit split = Kept(context);
    if (!split.splits_sequence()) return {gradients[0], at::Tensor()};
    return {SequenceGather(gradients[0], split.group, kBackward).Await(), at::Tensor()};
  }
};

}  // namespace

at::Tensor ColumnParallelProduct(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                 const TensorSplit& split) {
  if (split.group == nullptr) return at::linear(input, weight, bias);
  return ColumnParallelFunction::apply(input, weight, bias, split);
}

at::Tensor SumOfPartials(const at::Tensor& partial, const TensorSplit& split) {
  if (split.group == nullptr) return partial;
  return PartialSumFunction::apply(partial, split);
}

}  // namespace dynamiccl::zero
