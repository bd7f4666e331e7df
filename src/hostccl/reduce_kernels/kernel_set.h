// SPDX-License-Identifier: Apache-2.0
// The sets of reduction kernels, one for each instruction set. Each set is a file with its own compiler
// options. Such a file must not use inline functions from other files: the linker could keep this file's copy
// for the whole program, and the program would then crash on other CPUs.
#pragma once

#include "src/hostccl/reduce_kernels/reduce_kernel.h"

namespace dynamiccl::hostccl {

// The functions of one set for one data type and operator.
struct TypeKernels {
  CombineKernel combine = nullptr;
  WidenKernel widen = nullptr;
  NarrowKernel narrow = nullptr;
};

// Returns true if this CPU can run the set. Other code calls Runs() instead.
bool CpuRuns(KernelSet set);

// Returns plain loops. They define the correct results.
TypeKernels PortableKernels(DataType type, ReduceOp op);
// These return vector kernels, whose results equal those of the plain loops bit for bit. Call them only if
// Runs() is true for the set.
TypeKernels Avx2Kernels(DataType type, ReduceOp op);
TypeKernels Avx512Kernels(DataType type, ReduceOp op);

// Returns the functions of a set for one data type and operator.
TypeKernels KernelsOf(KernelSet set, DataType type, ReduceOp op);

}  // namespace dynamiccl::hostccl
