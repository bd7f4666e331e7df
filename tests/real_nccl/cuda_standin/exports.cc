// SPDX-License-Identifier: Apache-2.0
// Exports CUDA's names for programs that open the CUDA runtime or the driver themselves, as DynamICCL's
// programs do. Each name jumps to the stand-in's function of that name and keeps all arguments. NCCL needs
// none of these names.
#include "tests/real_nccl/cuda_standin/function_table.h"

// Each row is X(name, index in cuda_standin_exports).
// clang-format off: it splits long lists another way each time
#define CUDA_STANDIN_RUNTIME_EXPORTS(X) \
  X(cudaGetDeviceCount, 0)              \
  X(cudaSetDevice, 1)                   \
  X(cudaGetDevice, 2)                   \
  X(cudaDeviceGetAttribute, 3)          \
  X(cudaGetErrorString, 4)              \
  X(cudaMalloc, 5)                      \
  X(cudaFree, 6)                        \
  X(cudaHostAlloc, 7)                   \
  X(cudaFreeHost, 8)                    \
  X(cudaMemcpy, 9)                      \
  X(cudaMemset, 10)                     \
  X(cudaStreamCreate, 11)               \
  X(cudaStreamCreateWithFlags, 12)      \
  X(cudaStreamDestroy, 13)              \
  X(cudaStreamSynchronize, 14)          \
  X(cudaEventCreate, 15)                \
  X(cudaEventDestroy, 16)               \
  X(cudaEventRecord, 17)                \
  X(cudaEventElapsedTime, 18)           \
  X(cudaDeviceSynchronize, 19)
#define CUDA_STANDIN_DRIVER_EXPORTS(X) \
  X(cuInit, 20)                        \
  X(cuModuleLoadData, 21)              \
  X(cuModuleUnload, 22)                \
  X(cuModuleGetFunction, 23)           \
  X(cuFuncSetAttribute, 24)            \
  X(cuGetErrorString, 25)              \
  X(cuLaunchKernel, 26)
// clang-format on

extern "C" {
// FillExports fills this table before main. The jumps below read it.
__attribute__((visibility("hidden"))) const void* cuda_standin_exports[27];
}

#define CUDA_STANDIN_JUMP(name, number)                                                                      \
  asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name ": jmp *cuda_standin_exports+8*" #number \
      "(%rip)\n");
CUDA_STANDIN_RUNTIME_EXPORTS(CUDA_STANDIN_JUMP)
CUDA_STANDIN_DRIVER_EXPORTS(CUDA_STANDIN_JUMP)

namespace cuda_standin {
namespace {

__attribute__((constructor)) void FillExports() {
#define CUDA_STANDIN_FILL_RUNTIME(name, number) cuda_standin_exports[number] = FindRuntimeFunction(#name);
  CUDA_STANDIN_RUNTIME_EXPORTS(CUDA_STANDIN_FILL_RUNTIME)
#define CUDA_STANDIN_FILL_DRIVER(name, number) cuda_standin_exports[number] = FindDriverFunction(#name);
  CUDA_STANDIN_DRIVER_EXPORTS(CUDA_STANDIN_FILL_DRIVER)
}

}  // namespace
}  // namespace cuda_standin
