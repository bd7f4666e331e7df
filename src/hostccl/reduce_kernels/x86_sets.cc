// SPDX-License-Identifier: Apache-2.0
// Finds out which sets of kernels an x86-64 CPU can run, by CPUID. The compiler's runtime also checks that
// the operating system saves the vector registers.
#include <cpuid.h>

#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {

// Returns whether the CPU has instructions to convert fp16. clang 14's __builtin_cpu_supports does not know
// this feature.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

bool CpuRuns(KernelSet set) {
  switch (set) {
    case KernelSet::kPortable:
      return true;
    case KernelSet::kAvx2:
      return __builtin_cpu_supports("avx2") && HasF16c();
    case KernelSet::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

}  // namespace dynamiccl::hostccl
