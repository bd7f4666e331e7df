// SPDX-License-Identifier: Apache-2.0
// Finds by CPUID which sets of kernels an x86-64 CPU can run. The compiler's runtime also checks that the
// system saves the registers.
#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {

bool CpuRuns(KernelSet set) {
  switch (set) {
    case KernelSet::kPortable:
      return true;
    case KernelSet::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
    case KernelSet::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

}  // namespace dynamiccl::hostccl
