// SPDX-License-Identifier: Apache-2.0
// The sets of kernels, one per instruction set; each is a file compiled with its own machine options.
#pragma once

#include "src/hostccl/reduce_kernels/reduce_kernel.h"

namespace dynamiccl::hostccl {

struct TypeKernels {
  CombineKernel combine = nullptr;
  DivideKernel divide = nullptr;
  WidenKernel widen = nullptr;
  NarrowKernel narrow = nullptr;
};

TypeKernels PortableKernels(DataType type, ReduceOp op);
// Only where the CPU has AVX2 and F16C. Same results, bit for bit.
TypeKernels Avx2Kernels(DataType type, ReduceOp op);

}  // namespace dynamiccl::hostccl
