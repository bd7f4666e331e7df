// SPDX-License-Identifier: Apache-2.0
// One allocation for long-lived tensors (M_D of the ZeRO paper, section 6.3). If long-lived tensors were
// allocated separately among many short-lived ones, the free memory would be cut into small holes. Guards
// before and after each slot reveal writes outside of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace dynamiccl::zero {

// A fixed set of slots in one allocation. Its owner uses the slots on one thread at a time. CheckGuards
// throws if memory was overwritten; nothing else fails after construction.
class ContiguousPool {
 public:
  // Allocates a one-dimensional tensor of this many elements, with undefined content.
  using NewTensor = std::function<at::Tensor(int64_t elements)>;

  // Creates one slot of each length, in elements. `allocate` is called here only: once for 0 elements, to
  // learn the type, and once for the pool.
  ContiguousPool(const std::vector<int64_t>& slot_elements, const NewTensor& allocate);

  size_t slots() const { return slots_.size(); }
  // A one-dimensional tensor of the slot's length. It has its own version counter, so that autograd may save
  // one slot while another is written.
  const at::Tensor& slot(size_t index) const { return slots_[index]; }
  int64_t bytes() const { return memory_.nbytes(); }

  // If a guard was overwritten, throws std::logic_error that names the slot. On CUDA the function waits for
  // the device.
  void CheckGuards() const;

 private:
  // Returns elements [begin, begin + elements) of the pool as a tensor with a version counter of its own.
  at::Tensor Alias(int64_t begin, int64_t elements) const;

  at::Tensor memory_;
  std::vector<at::Tensor> slots_;
  // Guard i lies before slot i; the last guard lies after the last slot.
  std::vector<at::Tensor> guards_;
};

}  // namespace dynamiccl::zero
