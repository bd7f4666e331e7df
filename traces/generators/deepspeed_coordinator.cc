// SPDX-License-Identifier: Apache-2.0
// The queue holds the uses of all parameters in a pass, in order. A module removes its own uses from the
// front. The prefetcher removes further uses, until prefetch_elements are being gathered or live_elements are
// gathered.
#include "traces/generators/deepspeed_coordinator.h"

#include <algorithm>

namespace dynamiccl {
namespace {

// The modules of a pass in the order of their use: forward, then backward.
std::vector<const ModuleShape*> OrderOfUse(const std::vector<ModuleShape>& modules) {
  std::vector<const ModuleShape*> order;
  for (const ModuleShape& module : modules) order.push_back(&module);
  // In the backward pass children come in reverse order, and each container's hook comes before its
  // children's hooks.
  const std::function<void(size_t)> backward = [&](size_t module) {
    order.push_back(&modules[module]);
    const std::vector<size_t> children = ChildrenOf(modules, module);
    std::for_each(children.rbegin(), children.rend(), backward);
  };
  backward(0);
  return order;
}

}  // namespace

GatherCoordinator::GatherCoordinator(const ModelShape& model, const CoordinatorLimits& limits, bool recorded,
                                     Gather gather)
    : model_(model),
      limits_(limits),
      recorded_(recorded),
      gather_(std::move(gather)),
      modules_(ModulesOf(model)),
      order_(OrderOfUse(modules_)),
      last_fetched_for_(model.parameters.size(), -1) {
  for (const ParameterShape& parameter : model.parameters)
    available_.push_back(recorded && IsPersistent(parameter, limits));
  for (size_t step = 0; step < order_.size(); ++step) {
    for (const size_t parameter : order_[step]->parameters)
      queue_.push_back({parameter, static_cast<int64_t>(step)});
  }
}

void GatherCoordinator::GatherNow(const std::vector<size_t>& parameters) {
  if (parameters.empty()) return;
  for (const size_t parameter : parameters) {
    available_[parameter] = true;
    live_ += model_.parameters[parameter].Elements();
  }
  gather_(parameters);
}

// Gathers the module's parameters that are not available, then prefetches for later modules.
void GatherCoordinator::BeforeUse(const ModuleShape& module) {
  std::vector<size_t> missing;
  for (const size_t parameter : module.parameters) {
    if (!available_[parameter]) missing.push_back(parameter);
  }
  GatherNow(missing);
  if (recorded_) {
    DropFromQueue(module);
    Prefetch();
  }
  ++step_;
}

// Removes the uses of this module from the queue, unless an earlier prefetch already did.
void GatherCoordinator::DropFromQueue(const ModuleShape& module) {
  const auto waiting = std::count_if(module.parameters.begin(), module.parameters.end(),
                                     [&](size_t parameter) { return last_fetched_for_[parameter] < step_; });
  for (std::ptrdiff_t i = 0; i < waiting && !queue_.empty(); ++i) {
    last_fetched_for_[queue_.front().parameter] = queue_.front().step;
    queue_.pop_front();
  }
}

// Gathers the parameters of the next uses as one message.
void GatherCoordinator::Prefetch() {
  const int64_t room = std::min(limits_.live_elements - live_, limits_.prefetch_elements);
  std::vector<size_t> parameters;
  int64_t elements = 0;
  while (!queue_.empty() && elements < room) {
    const Use use = queue_.front();
    queue_.pop_front();
    last_fetched_for_[use.parameter] = std::max(last_fetched_for_[use.parameter], use.step);
    const bool known = std::find(parameters.begin(), parameters.end(), use.parameter) != parameters.end();
    if (available_[use.parameter] || known) continue;
    parameters.push_back(use.parameter);
    elements += model_.parameters[use.parameter].Elements();
  }
  GatherNow(parameters);
}

bool GatherCoordinator::IsReusedSoon(size_t parameter) const {
  // The prefetcher took a later use of this parameter from the queue without gathering, because the parameter
  // was still available. So the parameter must stay.
  if (last_fetched_for_[parameter] > step_) return true;
  int64_t traversed = 0;
  for (auto step = static_cast<size_t>(step_); step < order_.size(); ++step) {
    if (traversed >= limits_.reuse_elements) return false;
    for (const size_t used : order_[step]->parameters) {
      if (used == parameter) return true;
      traversed += model_.parameters[used].Elements();
    }
  }
  return false;
}

// Releases the module's parameters, except persistent ones and those that are used again soon.
void GatherCoordinator::AfterUse(const ModuleShape& module) {
  for (const size_t parameter : module.parameters) {
    if (!available_[parameter]) continue;
    const bool keep =
        recorded_ && (IsPersistent(model_.parameters[parameter], limits_) || IsReusedSoon(parameter));
    if (keep) continue;
    available_[parameter] = false;
    live_ -= model_.parameters[parameter].Elements();
  }
}

}  // namespace dynamiccl
