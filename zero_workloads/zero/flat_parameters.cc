// SPDX-License-Identifier: Apache-2.0
// Layout and gradients of one unit. The layers' tensors are detached views of the flat tensor, each a leaf of
// autograd with a gradient of its own. CopyGradients collects these gradients when a bucket needs them.
#include "zero_workloads/zero/flat_parameters.h"

#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>

#include "zero_workloads/memory/memory_counters.h"
#include "zero_workloads/parallel/partition.h"

namespace dynamiccl::zero {
namespace {

// Calls a function after autograd has stored a parameter's gradient.
class AfterGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit AfterGradient(std::function<void()> function) : function_(std::move(function)) {}
  void operator()(const torch::autograd::Variable& parameter) override {
    Recount(parameter.grad(), MemoryCategory::kGradients);
    function_();
  }

 private:
  std::function<void()> function_;
};

}  // namespace

FlatParameters::FlatParameters(ModelUnit unit) : unit_(std::move(unit)) {
  for (const ParameterSlot& parameter : unit_.parameters) {
    offsets_.push_back(elements_);
    elements_ += RoundUp(parameter.Elements(), kParameterAlignment);
  }
}

void FlatParameters::Bind(int64_t padded_elements, const at::TensorOptions& options) {
  flat_ = at::zeros({padded_elements}, options);
  for (size_t i = 0; i < unit_.parameters.size(); ++i) {
    const ParameterSlot& parameter = unit_.parameters[i];
    const at::Tensor place =
        flat_.narrow(0, offsets_[i], parameter.Elements()).view(parameter.shape).detach();
    if (parameter.tensor->defined()) {
      parameter.tensor->set_data(place);
    } else {
      *parameter.tensor = place;
    }
    parameter.tensor->set_requires_grad(true);
  }
}

void FlatParameters::OnGradientsReady(std::function<void()> ready) {
  const std::weak_ptr<const bool> life = life_;
  const auto count = [this, life, ready = std::move(ready)](size_t parameter) {
    if (life.expired()) return;
    if (gradient_home_.defined()) MoveHome(parameter);
    if (++gradients_ready_ < unit_.parameters.size()) return;
    gradients_ready_ = 0;
    ready();
  };
  for (size_t i = 0; i < unit_.parameters.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(*unit_.parameters[i].tensor,
                                                   std::make_unique<AfterGradient>([count, i] { count(i); }));
  }
}

void FlatParameters::MoveHome(size_t parameter) {
  at::Tensor& gradient = unit_.parameters[parameter].tensor->mutable_grad();
  gradient =
      gradient_home_.narrow(0, offsets_[parameter], gradient.numel()).view(gradient.sizes()).copy_(gradient);
}

void FlatParameters::ForEachParameter(int64_t begin, int64_t end,
                                      const std::function<void(size_t, int64_t, int64_t)>& visit) const {
  for (size_t i = 0; i < unit_.parameters.size(); ++i) {
    const int64_t first = std::max(begin, offsets_[i]);
    const int64_t last = std::min(end, offsets_[i] + unit_.parameters[i].Elements());
    if (first < last) visit(i, first - offsets_[i], last - offsets_[i]);
  }
}

void FlatParameters::ComputeFirstValues() {
  if (unit_.compute_values) unit_.compute_values(unit_.parameters);
  unit_.compute_values = {};
}

void FlatParameters::DropFirstValues() {
  for (ParameterSlot& parameter : unit_.parameters) parameter.values.reset();
}

at::Tensor FlatParameters::InitialValues(uint64_t seed, int64_t begin, int64_t end) const {
  at::Tensor values = at::zeros({end - begin}, at::kFloat);
  ForEachParameter(begin, end, [&](size_t i, int64_t first, int64_t last) {
    FillInitialValues(unit_.parameters[i], seed, first, last,
                      values.data_ptr<float>() + offsets_[i] + first - begin);
  });
  return values;
}

void FlatParameters::AccumulateGradients(at::ScalarType type) {
  if (!gradient_sums_.defined() && sums_home_.defined()) gradient_sums_ = sums_home_.zero_();
  if (!gradient_sums_.defined()) {
    const CountAs category(MemoryCategory::kGradients);
    gradient_sums_ = at::zeros({elements_}, flat_.options().dtype(type));
  }
  for (size_t i = 0; i < unit_.parameters.size(); ++i) {
    at::Tensor& gradient = unit_.parameters[i].tensor->mutable_grad();
    if (!gradient.defined()) continue;
    gradient_sums_.narrow(0, offsets_[i], gradient.numel()).add_(gradient.reshape({-1}));
    gradient.reset();
  }
}

void FlatParameters::CopyGradients(int64_t begin, const at::Tensor& output) const {
  output.zero_();
  ForEachParameter(begin, begin + output.numel(), [&](size_t i, int64_t first, int64_t last) {
    const at::Tensor gradient = gradient_sums_.defined()
                                    ? gradient_sums_.narrow(0, offsets_[i], unit_.parameters[i].Elements())
                                    : unit_.parameters[i].tensor->grad();
    if (!gradient.defined()) return;
    output.narrow(0, offsets_[i] + first - begin, last - first)
        .copy_(gradient.reshape({-1}).narrow(0, first, last - first));
  });
}

void FlatParameters::DropGradients() {
  gradient_sums_.reset();
  for (const ParameterSlot& parameter : unit_.parameters) parameter.tensor->mutable_grad().reset();
}

}  // namespace dynamiccl::zero
