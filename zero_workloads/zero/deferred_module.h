// SPDX-License-Identifier: Apache-2.0
// A torch::nn::Module without memory for its parameters, for modules that do not fit into one rank's memory:
//
//   Net net{nullptr};
//   zero::DeferredModule model([&] { net = Net(options); return net.ptr(); });
//   zero::Engine engine(model, group, settings);
//   const at::Tensor loss = engine.Forward([&] { return torch::mse_loss(net->forward(input), target); });
//
// The engine computes the first values unit by unit and keeps its own part of each. The values are bit by bit
// those of an ordinary construction that begins with the same state of the random number generator, and the
// generator ends in the same state.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "zero_workloads/zero/construction_record.h"

namespace torch::nn {
class Module;
}

namespace dynamiccl::zero {

// The program owns the object, and may destroy it once an engine was made from it. All functions run on the
// thread that constructs the object.
class DeferredModule {
 public:
  // Calls `construct` once, which must construct a module for the CPU. Then gives buffers and parameters
  // without gradients their memory and values; trainable parameters get none. Throws std::invalid_argument if
  // a trainable parameter already has memory, or cannot be made without memory. The text names the parameter
  // or the operation.
  explicit DeferredModule(const std::function<std::shared_ptr<torch::nn::Module>()>& construct);

  torch::nn::Module& module() const { return *module_; }
  // Computes the values that ordinary construction gives a trainable parameter. They have the data type and
  // shape with which `construct` made the parameter.
  at::Tensor FirstValues(const at::Tensor& parameter) const;

 private:
  // Throws std::invalid_argument if a trainable parameter has memory.
  void RefuseParametersWithMemory() const;
  // Gives tensors that are not trained their memory and values.
  void FillTheRest() const;

  std::shared_ptr<torch::nn::Module> module_;
  std::unique_ptr<ConstructionRecord> record_;
};

}  // namespace dynamiccl::zero
