// SPDX-License-Identifier: Apache-2.0
// Maps between the elements of a slice of a tensor and those of the whole tensor; both are numbered in
// row-major order.
#pragma once

#include <cstdint>
#include <optional>

namespace dynamiccl::zero {

// A slice along one dimension consists of `run` contiguous elements out of every `stride` elements; the first
// run starts at `base`. The whole tensor is one run. All three are numbers of elements.
//
// Example: columns 4 to 7 of a [3, 8] matrix are run 4, stride 8, base 4; local element 5 is global element
// 13.
struct TensorSlice {
  int64_t run = 1;
  int64_t stride = 1;
  int64_t base = 0;

  // Index in the whole tensor of element `local` of the slice.
  int64_t GlobalIndex(int64_t local) const { return local / run * stride + base + local % run; }
  // Index in the slice of element `global` of the whole tensor; empty if the slice does not contain it.
  std::optional<int64_t> LocalIndex(int64_t global) const {
    const int64_t column = global % stride - base;
    if (column < 0 || column >= run) return std::nullopt;
    return global / stride * run + column;
  }
  // Number of elements of the slice from `local` on that are contiguous in the whole tensor. Elements from
  // `end` on do not count.
  int64_t Contiguous(int64_t local, int64_t end) const {
    const int64_t run_end = (local / run + 1) * run;
    return (end < run_end ? end : run_end) - local;
  }
};

}  // namespace dynamiccl::zero
