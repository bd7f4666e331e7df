// SPDX-License-Identifier: Apache-2.0
// M_D: memory for tensors that live long among many that do not, taken once and in one piece, so that they
// leave no holes between the others. Guards before and after each slot show who wrote past its end.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace dynamiccl::zero {

class ContiguousPool {
 public:
  // A one-dimensional tensor of that many elements; content undefined.
  using NewTensor = std::function<at::Tensor(int64_t elements)>;

  // One slot of each length, in elements. `allocate` is called once, here.
  ContiguousPool(const std::vector<int64_t>& slot_elements, const NewTensor& allocate);

  size_t slots() const { return slots_.size(); }
  // A one-dimensional tensor of the slot's length; with a version counter of its own, so that autograd may
  // save one slot while another is written.
  const at::Tensor& slot(size_t index) const { return slots_[index]; }
  int64_t bytes() const { return memory_.nbytes(); }

  // Throws std::logic_error that names the slot with a changed guard. On CUDA it waits for the device.
  void CheckGuards() const;

 private:
  // `elements` of the pool from `begin` on.
  at::Tensor Alias(int64_t begin, int64_t elements) const;

  at::Tensor memory_;
  std::vector<at::Tensor> slots_;
  std::vector<at::Tensor> guards_;  // guard i lies before slot i, the last one after the last slot
};

}  // namespace dynamiccl::zero
