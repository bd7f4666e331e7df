// SPDX-License-Identifier: Apache-2.0
// Replaces avx2.cc, avx512.cc and x86_sets.cc on machines other than x86-64, which have no vector kernels.
#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {

bool CpuRuns(KernelSet set) {
  return set == KernelSet::kPortable;
}

TypeKernels Avx2Kernels(DataType type, ReduceOp op) {
  return PortableKernels(type, op);
}

TypeKernels Avx512Kernels(DataType type, ReduceOp op) {
  return PortableKernels(type, op);
}

}  // namespace dynamiccl::hostccl
