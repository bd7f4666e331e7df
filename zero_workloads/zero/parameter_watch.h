// SPDX-License-Identifier: Apache-2.0
// Detects which parameters an operation is about to read, for modules that call no hooks: LibTorch's C++
// modules have none (github.com/pytorch/pytorch/issues/25888).
//
// A fallback in LibTorch's dispatcher sees every operation, in forward and backward passes alike, under a
// dispatch key that LibTorch reserves for its users' modes. It compares the storages of the arguments with
// those of the watched tensors, so a view of a parameter counts as the parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace dynamiccl::zero {

// Watches the tensors of one engine, which owns the watch. Several watches may exist in a process. Run()
// works on the calling thread; Add() and the destructor take the lock that protects the process's table of
// storages.
class ParameterWatch {
 public:
  // Receives the units, each once, whose parameters one operation is about to read. The function is called on
  // the operation's thread, and operations inside it are not watched. If it throws, the operation throws the
  // same exception.
  using Read = std::function<void(const std::vector<int>& units)>;
  explicit ParameterWatch(Read read) : read_(std::move(read)) {}
  ~ParameterWatch();
  ParameterWatch(const ParameterWatch&) = delete;
  ParameterWatch& operator=(const ParameterWatch&) = delete;

  // Makes everything that shares memory with `flat` count as part of the unit.
  void Add(const at::Tensor& flat, int unit);

  // Runs `body` and watches the operations of this thread. The threads on which LibTorch runs a backward pass
  // of `body` are watched as well.
  void Run(const std::function<void()>& body) const;

 private:
  Read read_;
  // The tensors that were added. They keep their storages alive, whose addresses are the keys of the
  // process's table.
  std::vector<at::Tensor> watched_;
};

}  // namespace dynamiccl::zero
