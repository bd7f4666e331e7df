// SPDX-License-Identifier: Apache-2.0
// Records the construction, then gives memory to what no engine divides.
#include "zero_workloads/zero/deferred_module.h"

#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace dynamiccl::zero {

DeferredModule::DeferredModule(const std::function<std::shared_ptr<torch::nn::Module>()>& construct) {
  try {
    record_ = std::make_unique<ConstructionRecord>([&] { module_ = construct(); });
  } catch (const c10::Error& failure) {
    throw std::invalid_argument(std::string("the construction of a DeferredModule failed: ") +
                                failure.what_without_backtrace());
  }
  if (module_ == nullptr) throw std::invalid_argument("the function for a DeferredModule returned no module");
  RefuseParametersWithMemory();
  FillTheRest();
}

void DeferredModule::RefuseParametersWithMemory() const {
  for (const auto& item : module_->named_parameters()) {
    if (!item.value().requires_grad() || record_->IsHollow(item.value())) continue;
    throw std::invalid_argument(
        "parameter " + item.key() +
        " has memory already: it was made outside of the function for the DeferredModule, on another thread, "
        "or from such tensors alone. Make it in the function (torch::empty and copy_, for example), or give "
        "the engine the whole module");
  }
}

void DeferredModule::FillTheRest() const {
  std::vector<at::Tensor> tensors = module_->buffers();
  for (const at::Tensor& parameter : module_->parameters()) {
    if (!parameter.requires_grad()) tensors.push_back(parameter);
  }
  const std::vector<at::Tensor> values = record_->Values(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (record_->IsHollow(tensors[i])) tensors[i].set_data(values[i]);
  }
}

at::Tensor DeferredModule::FirstValues(const at::Tensor& parameter) const {
  return record_->Values({&parameter, 1}).front();
}

}  // namespace dynamiccl::zero
