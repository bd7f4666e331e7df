// SPDX-License-Identifier: Apache-2.0
// Tells which parameters an operation is about to read, for modules that call no hooks: LibTorch's C++
// modules have none (github.com/pytorch/pytorch/issues/25888). Operations are seen by a fallback of
// LibTorch's dispatcher under the key that it keeps for modes of its users, forward and backward pass alike,
// and recognised by the storage of their arguments: a view of a parameter counts as the parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace dynamiccl::zero {

class ParameterWatch {
 public:
  // Gets the units, each once, whose parameters one operation is about to read, on the thread that runs it;
  // operations inside it are not watched. What it throws leaves the operation.
  using Read = std::function<void(const std::vector<int>& units)>;
  explicit ParameterWatch(Read read) : read_(std::move(read)) {}
  ~ParameterWatch();
  ParameterWatch(const ParameterWatch&) = delete;
  ParameterWatch& operator=(const ParameterWatch&) = delete;

  // Everything that shares memory with `flat` belongs to the unit.
  void Add(const at::Tensor& flat, int unit);

  // Runs `body` with the operations of this thread watched. Backward passes that LibTorch runs on threads of
  // its own take that over.
  void Run(const std::function<void()>& body) const;

 private:
  Read read_;
  std::vector<at::Tensor> watched_;
};

}  // namespace dynamiccl::zero
