// SPDX-License-Identifier: Apache-2.0
// The sets of kernels, one per instruction set; each is a file compiled with its own machine options, so it
// may use nothing inline from elsewhere: the linker could keep that copy for the whole program.
#pragma once

#include "src/hostccl/reduce_kernels/reduce_kernel.h"

namespace dynamiccl::hostccl {

struct TypeKernels {
  CombineKernel combine = nullptr;
  WidenKernel widen = nullptr;
  NarrowKernel narrow = nullptr;
};

// What the CPU has; asked by Runs().
bool CpuRuns(KernelSet set);

// The plain loops that define the results.
TypeKernels PortableKernels(DataType type, ReduceOp op);
// Only where Runs() says so. Same results, bit for bit.
TypeKernels Avx2Kernels(DataType type, ReduceOp op);
TypeKernels Avx512Kernels(DataType type, ReduceOp op);

TypeKernels KernelsOf(KernelSet set, DataType type, ReduceOp op);

}  // namespace dynamiccl::hostccl
