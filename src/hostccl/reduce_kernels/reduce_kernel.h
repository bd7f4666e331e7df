// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic on host memory of any alignment, chosen at run time by data type, operator and CPU.
// fp16 and bf16 are widened to fp32, combined, and rounded to nearest even in every step.
#pragma once

#include <cstddef>

#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"

namespace dynamiccl::hostccl {

// out[i] = a[i] op b[i]; `out` may be `a` or `b`.
using CombineKernel = void (*)(void* out, const void* a, const void* b, size_t count);
// data[i] = data[i] / n_ranks (integers: towards zero).
using DivideKernel = void (*)(void* data, size_t count, int n_ranks);
// The compute type of fp16 and bf16 is fp32; other types are their own.
using WidenKernel = void (*)(void* wide, const void* narrow, size_t count);
using NarrowKernel = void (*)(void* narrow, const void* wide, size_t count);

struct Reduction {
  CombineKernel combine = nullptr;
  DivideKernel divide = nullptr;  // null unless the operator is avg
  size_t element_bytes = 1;
  int n_ranks = 1;
};

// kAvg combines as sum; the division is the last step. Types without arithmetic (fp8) give a null combine.
Reduction FindReduction(DataType type, ReduceOp op, int n_ranks);

// How HOSTCCL_SUM=rank_order accumulates: in `wide` elements, rounded once at the end.
struct WideAccumulation {
  Reduction reduction;  // over wide elements
  WidenKernel widen = nullptr;
  NarrowKernel narrow = nullptr;
};
WideAccumulation FindWideAccumulation(DataType type, ReduceOp op, int n_ranks);

// "avx2" or "portable": what this machine uses.
const char* KernelSetName();

}  // namespace dynamiccl::hostccl
