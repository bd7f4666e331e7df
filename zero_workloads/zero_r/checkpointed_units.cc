// SPDX-License-Identifier: Apache-2.0
// The forward pass of a block runs without gradients. The block's output gets an autograd node, which
// computes the block again when the gradient arrives.
#include "zero_workloads/zero_r/checkpointed_units.h"

#include <c10/core/GradMode.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace dynamiccl::zero {
namespace {

using torch::autograd::variable_list;

// The backward pass of a unit. It runs the unit's forward pass again, now with gradients, and then the
// backward pass of that forward pass. Both are nested in the backward pass of the model. Gradients of the
// unit's parameters accumulate as without checkpoints.
class RecomputedUnit final : public torch::autograd::Node {
 public:
  RecomputedUnit(UnitForward forward, KeptActivation kept)
      : forward_(std::move(forward)), kept_(std::move(kept)) {}

  variable_list apply(variable_list&& gradients) override {
    if (!kept_) throw std::logic_error("a checkpointed unit was run backward twice");
    at::Tensor input = kept_->Restore();
    input.set_requires_grad(true);
    at::Tensor output;
    {
      const c10::AutoGradMode with_gradients(true);
      output = forward_(input);
    }
    torch::autograd::backward({std::move(output)}, std::move(gradients));
    kept_.reset();
    return {input.grad()};
  }

  void release_variables() override { kept_.reset(); }

 private:
  UnitForward forward_;
  std::optional<KeptActivation> kept_;
};

// Creates an autograd node. In PyTorch 2.13 nodes count their own references; in 2.11 a shared pointer counts
// them.
template <typename Unit>
auto MakeNode(const UnitForward& forward, KeptActivation kept) {
  if constexpr (std::is_base_of_v<c10::intrusive_ptr_target, Unit>)
    return c10::make_intrusive<Unit>(forward, std::move(kept));
  else
    return std::make_shared<Unit>(forward, std::move(kept));
}

}  // namespace

at::Tensor CheckpointedUnits::Forward(int unit, const UnitForward& forward, const at::Tensor& input) {
  if (!c10::GradMode::is_enabled()) return engine_->Forward(unit, forward, input);
  if (!input.requires_grad()) throw std::logic_error("a checkpointed unit needs an input with a gradient");
  const auto node = MakeNode<RecomputedUnit>(forward, store_->Keep(input));
  node->set_next_edges(torch::autograd::collect_next_edges(input));
  at::Tensor output;
  {
    const c10::NoGradGuard nothing_is_kept;
    output = engine_->Forward(unit, forward, input);
  }
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace dynamiccl::zero
