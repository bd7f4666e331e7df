// SPDX-License-Identifier: Apache-2.0
// ZeRO for any torch::nn::Module, without changes to it:
//
//   zero::Engine engine(*module, group, settings);
//   const at::Tensor loss = engine.Forward([&] { return torch::mse_loss(module->forward(input), target); });
//   engine.Backward(loss);
//   engine.Step(loss, learning_rate);
//
// Each child of the module is a unit (those of a Sequential or ModuleList apart), and so are the parameters
// that belong to no child. In stage 3 a unit's parameters are gathered when an operation is about to read
// them (parameter_watch.h), and given up when an operation reads others.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "zero_workloads/zero/parameter_watch.h"
#include "zero_workloads/zero/zero_engine.h"

namespace torch::nn {
class Module;
}

namespace dynamiccl::zero {

class Engine {
 public:
  // The module's parameters and buffers get the values of rank 0 of the first replica; its tensors stay the
  // same tensors, with memory of the engine's and of `settings.type`. Buffers are not kept equal afterwards.
  // Module and group outlive the engine, and in stage 3 parameters may be read inside Forward and Backward
  // only. A module without trainable parameters throws std::invalid_argument.
  Engine(torch::nn::Module& module, ProcessGroup* group, const EngineSettings& settings);

  // Runs a forward pass, for training or, under c10::NoGradGuard, for its result alone.
  at::Tensor Forward(const std::function<at::Tensor()>& pass);
  // As ZeroEngine's. Parameters that the pass did not use count with a gradient of zero.
  void Backward(const at::Tensor& loss);
  StepOutcome Step(const at::Tensor& loss, double learning_rate) {
    return engine_->Step(loss, learning_rate);
  }

  int64_t ParameterCount() const { return engine_->ParameterCount(); }
  std::string ParameterDigest() { return engine_->ParameterDigest(); }

 private:
  std::vector<ModelUnit> Divide(torch::nn::Module& module);
  // Of the group, and of its first replica.
  void TakeRankZerosValues(torch::nn::Module& module, ProcessGroup* group, ProcessGroup* replicas);
  // An operation is about to read parameters of the units.
  void Read(const std::vector<int>& units);
  // The forward pass goes on with other units.
  void GiveUpAllBut(const std::vector<int>& units);

  std::deque<at::Tensor> tensors_;  // handles of the module's parameters, to which units point
  std::unique_ptr<ZeroEngine> engine_;
  ParameterWatch watch_;
  bool backward_ = false;
  std::vector<int> reading_;  // what was read last in this pass
};

}  // namespace dynamiccl::zero
