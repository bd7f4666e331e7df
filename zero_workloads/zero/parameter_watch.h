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

// The watched tensors of one engine, which owns it. Several watches may exist in a process. Run() works on
// the calling thread; Add() and the destructor take the lock that protects the process's table of storages.
class ParameterWatch {
 public:
  // Receives the units, each once, whose parameters one operation is about to read. It is called on the
  // operation's thread, and nested operations are not watched. An exception from it is thrown by the
  // operation.
  using Read = std::function<void(const std::vector<int>& units)>;
  explicit ParameterWatch(Read read) : read_(std::move(read)) {}
  ~ParameterWatch();
  ParameterWatch(const ParameterWatch&) = delete;
  ParameterWatch& operator=(const ParameterWatch&) = delete;

  // Makes everything that shares memory with `flat` count as part of the unit.
  void Add(const at::Tensor& flat, int unit);

  // Runs `body` and watches the operations of this thread. Threads on which LibTorch runs backward passes
  // inherit the watching.
  void Run(const std::function<void()>& body) const;

 private:
  Read read_;
  // Keeps the storages alive, and with them the keys of the table.
  std::vector<at::Tensor> watched_;
};

}  // namespace dynamiccl::zero
