// SPDX-License-Identifier: Apache-2.0
// The sets of reduction kernels, one for each instruction set. Each set is a file that is compiled with
// machine options of its own. Such a file must not use inline functions from elsewhere: the linker could keep
// that file's copy for the whole program, which then fails on other CPUs.
#pragma once

#include "src/hostccl/reduce_kernels/reduce_kernel.h"

namespace dynamiccl::hostccl {

// Holds the kernels for one data type and operator.
struct TypeKernels {
  CombineKernel combine = nullptr;
  WidenKernel widen = nullptr;
  NarrowKernel narrow = nullptr;
};

// Returns whether this CPU can run the set; Runs() asks it.
bool CpuRuns(KernelSet set);

// The plain loops, which define the results.
TypeKernels PortableKernels(DataType type, ReduceOp op);
// Returns the vector kernels. Call them only where Runs() is true. They give the same results, bit for bit.
TypeKernels Avx2Kernels(DataType type, ReduceOp op);
TypeKernels Avx512Kernels(DataType type, ReduceOp op);

// The kernels of a set.
TypeKernels KernelsOf(KernelSet set, DataType type, ReduceOp op);

}  // namespace dynamiccl::hostccl
