// SPDX-License-Identifier: Apache-2.0
// Derives the events of a pass by observation, for models that call no hooks. The watch reports which units
// each operation reads. The engine translates this into BeforeForward, AfterForward and BeforeBackward calls
// on ZeroEngine.
#include "zero_workloads/zero/engine.h"

#include <ATen/ops/empty.h>
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

// The tensors that every rank holds whole: buffers, and parameters that are not trained.
std::vector<at::Tensor> UndividedTensors(const Module& module) {
  std::vector<at::Tensor> tensors = module.buffers();
  for (const at::Tensor& parameter : module.parameters()) {
    if (!parameter.requires_grad()) tensors.push_back(parameter);
  }
  return tensors;
}

// Gives all ranks the values of rank 0: over the engine's group first, then over the replicas.
class RankZero {
 public:
  RankZero(ProcessGroup* group, const EngineSettings& settings)
      : group_(group), replicas_(settings.replicas), device_(settings.device) {}

  // Replaces the values of `tensor`, and moves it to the engine's device.
  void ShareInPlace(const at::Tensor& tensor) const {
    if (tensor.device() != device_) tensor.set_data(tensor.to(device_));
    const at::Tensor values = tensor.contiguous();
    Send(values);
    if (!values.is_same(tensor)) tensor.data().copy_(values);
  }

  // Returns rank 0's `values(parameter)`. Only rank 0 computes them.
  at::Tensor Share(const at::Tensor& parameter,
                   const std::function<at::Tensor(const at::Tensor&)>& values) const {
    const bool here = group_->rank() == 0 && (replicas_ == nullptr || replicas_->rank() == 0);
    const at::Tensor shared = here ? values(parameter).to(device_).contiguous()
                                   : at::empty(parameter.sizes(), parameter.options().device(device_));
    Send(shared);
    return shared;
  }

 private:
  // NCCL has no type for some buffers (bool, int16), so all tensors are sent as bytes.
  void Send(const at::Tensor& values) const {
    const at::Tensor bytes = values.flatten().view(at::kByte);
    for (ProcessGroup* const over : {group_, replicas_}) {
      if (over != nullptr) over->AwaitOnHost(over->Broadcast(bytes, 0, kLabel));
    }
  }

  ProcessGroup* group_;
  ProcessGroup* replicas_;
  at::Device device_;
};

}  // namespace

Engine::Engine(Module& module, ProcessGroup* group, const EngineSettings& settings)
    : Engine(
          module, [](const at::Tensor& parameter) { return parameter.detach(); }, group, settings) {}

Engine::Engine(const DeferredModule& model, ProcessGroup* group, const EngineSettings& settings)
    : Engine(
          model.module(), [&model](const at::Tensor& parameter) { return model.FirstValues(parameter); },
          group, settings) {}

Engine::Engine(Module& module, const FirstValues& first_values, ProcessGroup* group,
               const EngineSettings& settings)
    : watch_([this](const std::vector<int>& units) { Read(units); }) {
  const c10::NoGradGuard no_gradients;
  const RankZero zero(group, settings);
  for (const at::Tensor& tensor : UndividedTensors(module)) zero.ShareInPlace(tensor);
  std::vector<ModelUnit> units =
      Divide(module, [&](const at::Tensor& parameter) { return zero.Share(parameter, first_values); });
  if (units.empty()) throw std::invalid_argument("the module has no parameters to train");
  engine_ = ZeroEngine::Create(std::move(units), group, settings);
  for (int unit = 0; unit < engine_->units(); ++unit) watch_.Add(engine_->parameters(unit).flat(), unit);
}

std::vector<ModelUnit> Engine::Divide(Module& module, const FirstValues& first_values) {
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
      unit.parameters.push_back({full, item.value().sizes().vec(), {}, &tensors_.back()});
    }
    unit.compute_values = [first_values](ParameterList& parameters) {
      for (ParameterSlot& slot : parameters) {
        slot.values = first_values(*slot.tensor).to(at::kCPU, at::kFloat).flatten().contiguous();
      }
    };
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

// The program may read the parameters outside of a pass, where no watch sees it. The step therefore waits for
// the gathers of stages 1 and 2 before it returns.
StepOutcome Engine::Step(const at::Tensor& loss, double learning_rate) {
  const StepOutcome outcome = engine_->Step(loss, learning_rate);
  engine_->AwaitParameters();
  return outcome;
}

}  // namespace dynamiccl::zero
