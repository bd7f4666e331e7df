// SPDX-License-Identifier: Apache-2.0
// Derives the events of a pass by observation, for models that call no hooks. The watch reports which units
// each operation reads. The engine translates this into BeforeForward, AfterForward and BeforeBackward calls
// on ZeroEngine.
#include "zero_workloads/zero/engine.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace dynamiccl::zero {
namespace {

using torch::nn::Module;

// The trace's label of the first broadcasts of parameters and buffers. They belong to no phase of a step.
constexpr CallLabel kLabel{DYNAMICCL_PHASE_OTHER, DYNAMICCL_ROLE_OTHER};

// True for modules such as Sequential, which only call their children. The children are the units then.
bool IsContainer(Module& module) {
  return module.as<torch::nn::SequentialImpl>() != nullptr ||
         module.as<torch::nn::ModuleListImpl>() != nullptr;
}

// Lists the modules that are units, with their names, in the order of registration.
void ListUnits(Module& module, const std::string& prefix,
               std::vector<std::pair<std::string, Module*>>* units) {
  for (const auto& child : module.named_children()) {
    const std::string name = prefix + child.key();
    if (IsContainer(*child.value())) {
      ListUnits(*child.value(), name + ".", units);
    } else {
      units->emplace_back(name, child.value().get());
    }
  }
}

}  // namespace

Engine::Engine(Module& module, ProcessGroup* group, const EngineSettings& settings)
    : watch_([this](const std::vector<int>& units) { Read(units); }) {
  TakeRankZerosValues(module, group, settings.replicas);
  std::vector<ModelUnit> units = Divide(module);
  if (units.empty()) throw std::invalid_argument("the module has no parameters to train");
  engine_ = ZeroEngine::Create(std::move(units), group, settings);
  for (int unit = 0; unit < engine_->units(); ++unit) watch_.Add(engine_->parameters(unit).flat(), unit);
}

void Engine::TakeRankZerosValues(Module& module, ProcessGroup* group, ProcessGroup* replicas) {
  const c10::NoGradGuard no_gradients;
  for (const std::vector<at::Tensor>& tensors : {module.parameters(), module.buffers()}) {
    for (const at::Tensor& tensor : tensors) {
      // NCCL has no type for some buffers (bool, int16), so all tensors are sent as bytes.
      at::Tensor bytes = tensor.contiguous();
      const at::Tensor flat = bytes.flatten().view(at::kByte);
      for (ProcessGroup* const over : {group, replicas}) {
        if (over != nullptr) over->AwaitOnHost(over->Broadcast(flat, 0, kLabel));
      }
      if (!bytes.is_same(tensor)) tensor.data().copy_(bytes);
    }
  }
}

std::vector<ModelUnit> Engine::Divide(Module& module) {
  std::vector<std::pair<std::string, Module*>> modules;
  ListUnits(module, "", &modules);
  // The module itself comes last and gets the parameters that belong to no unit yet.
  modules.emplace_back("", &module);
  std::vector<ModelUnit> units;
  std::set<const c10::TensorImpl*> seen;
  for (const auto& [name, owner] : modules) {
    // The first unit is treated as the root: it stays in memory from the forward to the backward pass.
    ModelUnit unit{name, {}, units.empty()};
    for (const auto& item : owner->named_parameters()) {
      // Tied parameters belong to the unit that names them first.
      if (!item.value().requires_grad() || !seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
      tensors_.push_back(item.value());
      const std::string full = name.empty() ? item.key() : name + "." + item.key();
      ParameterSlot slot{full, item.value().sizes().vec(), {}, &tensors_.back()};
      slot.values = item.value().detach().to(at::kCPU, at::kFloat).flatten().clone();
      unit.parameters.push_back(std::move(slot));
    }
    if (!unit.parameters.empty()) units.push_back(std::move(unit));
  }
  return units;
}

void Engine::GiveUpAllBut(const std::vector<int>& units) {
  for (const int unit : reading_) {
    if (std::find(units.begin(), units.end(), unit) == units.end()) engine_->AfterForward(unit, {});
  }
}

void Engine::Read(const std::vector<int>& units) {
  if (units == reading_) return;
  if (!backward_) GiveUpAllBut(units);
  const std::vector<int> before = std::exchange(reading_, units);
  for (const int unit : units) {
    if (engine_->IsInUse(unit)) continue;
    if (backward_) {
      engine_->BeforeBackward(unit);
    } else if (std::find(before.begin(), before.end(), unit) == before.end()) {
      engine_->BeforeForward(unit);
    }
  }
}

at::Tensor Engine::Forward(const std::function<at::Tensor()>& pass) {
  backward_ = false;
  reading_.clear();
  at::Tensor loss;
  watch_.Run([&] { loss = pass(); });
  GiveUpAllBut({});
  return loss;
}

void Engine::Backward(const at::Tensor& loss) {
  backward_ = true;
  reading_.clear();
  watch_.Run([&] { engine_->Backward(loss); });
}

}  // namespace dynamiccl::zero
