// SPDX-License-Identifier: Apache-2.0
// Where the elements of a slice of a tensor lie in the whole tensor, both in row-major order.
#pragma once

#include <cstdint>
#include <optional>

namespace dynamiccl::zero {

// Elements. A slice along one dimension is `run` contiguous elements in each `stride`, from `base` on; the
// whole tensor is one run.
struct TensorSlice {
  int64_t run = 1;
  int64_t stride = 1;
  int64_t base = 0;

  int64_t GlobalIndex(int64_t local) const { return local / run * stride + base + local % run; }
  // None: the element is not in the slice.
  std::optional<int64_t> LocalIndex(int64_t global) const {
    const int64_t column = global % stride - base;
    if (column < 0 || column >= run) return std::nullopt;
    return global / stride * run + column;
  }
  // How many elements from `local` to at most `end` lie one after another in the whole tensor.
  int64_t Contiguous(int64_t local, int64_t end) const {
    const int64_t run_end = (local / run + 1) * run;
    return (end < run_end ? end : run_end) - local;
  }
};

}  // namespace dynamiccl::zero
