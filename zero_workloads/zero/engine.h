// SPDX-License-Identifier: Apache-2.0
// ZeRO for any torch::nn::Module, without changes to the module:
//
//   zero::Engine engine(*module, group, settings);
//   const at::Tensor loss = engine.Forward([&] { return torch::mse_loss(module->forward(input), target); });
//   engine.Backward(loss);
//   engine.Step(loss, learning_rate);
//
// Each child of the module is a unit; the children of a Sequential or ModuleList are units of their own. The
// parameters that belong to no child form the last unit. In stage 3 a unit's parameters are gathered when an
// operation is about to read them (parameter_watch.h), and freed when an operation reads those of other
// units.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "zero_workloads/zero/deferred_module.h"
#include "zero_workloads/zero/parameter_watch.h"
#include "zero_workloads/zero/zero_engine.h"

namespace torch::nn {
class Module;
}

namespace dynamiccl::zero {

// Wraps a ZeroEngine for modules that call no hooks. The program owns it and calls it on its training thread;
// every rank makes the same calls. A failed collective throws as ProcessGroup does, and the engine cannot be
// used afterwards.
class Engine {
 public:
  // All ranks construct their engines together. Parameters and buffers receive the values of rank 0 of the
  // first replica. The module's tensor objects stay the same, but their memory belongs to the engine and has
  // the type `settings.type`. Buffers are not kept equal afterwards. Module and group must outlive the
  // engine. In stage 3 parameters may be read inside Forward and Backward only. A module without trainable
  // parameters throws std::invalid_argument.
  Engine(torch::nn::Module& module, ProcessGroup* group, const EngineSettings& settings);
  // The same for a module whose parameters have no memory yet: they get their values unit by unit, so that no
  // rank holds more than its part and one unit. The module must outlive the engine; `model` need not.
  Engine(const DeferredModule& model, ProcessGroup* group, const EngineSettings& settings);

  // Runs a forward pass and returns its result. If it runs under c10::NoGradGuard, no backward pass may
  // follow.
  at::Tensor Forward(const std::function<at::Tensor()>& pass);
  // Works like ZeroEngine::Backward. A parameter that the pass did not use counts with a gradient of zero.
  void Backward(const at::Tensor& loss);
  // Works like ZeroEngine::Step. In stages 0 to 2 the module's parameters have their new values when it
  // returns.
  StepOutcome Step(const at::Tensor& loss, double learning_rate);

  int64_t ParameterCount() const { return engine_->ParameterCount(); }
  std::string ParameterDigest() { return engine_->ParameterDigest(); }

 private:
  // Computes the first values of a parameter on this rank. All ranks then replace these values by those of
  // rank 0.
  using FirstValues = std::function<at::Tensor(const at::Tensor& parameter)>;

  Engine(torch::nn::Module& module, const FirstValues& first_values, ProcessGroup* group,
         const EngineSettings& settings);
  // Divides the module into units, and says how the first values of their slots are computed.
  std::vector<ModelUnit> Divide(torch::nn::Module& module, const FirstValues& first_values);
  // Called by the watch when an operation is about to read parameters of `units`.
  void Read(const std::vector<int>& units);
  // Frees the units read so far, except `units`, which the forward pass now uses.
  void GiveUpAllBut(const std::vector<int>& units);

  // Handles of the module's parameters. Slots point to them, so their addresses must not change.
  std::deque<at::Tensor> tensors_;
  std::unique_ptr<ZeroEngine> engine_;
  ParameterWatch watch_;
  // True during a backward pass.
  bool backward_ = false;
  // The units that the latest operation of this pass read.
  std::vector<int> reading_;
};

}  // namespace dynamiccl::zero
