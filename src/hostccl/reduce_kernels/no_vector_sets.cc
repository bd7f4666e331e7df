// SPDX-License-Identifier: Apache-2.0
// In place of avx2.cc and avx512.cc where the machine is not x86-64: there are no vector sets.
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
