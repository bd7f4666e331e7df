// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA driver's functions for kernels and for memory operations in streams. It also exports
// cuGetProcAddress, which NCCL before 2.21 looks up in libcuda.so.1.
#include <cstring>

#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/launch.h"

namespace cuda_standin {
namespace {

int Succeed() {
  return kSuccess;
}

// Loads a program's own kernels. Nothing but the first four bytes of the module is read. The handle of a
// kernel is the address of a copy of its name, which lives as long as the process.
int ModuleLoadData(void** module, const void* image) {
  // The first four bytes of a file that nvcc made for several architectures (fatbinary_section.h of the CUDA
  // Toolkit).
  constexpr uint32_t kFatBinary = 0xba55ed50;
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != kFatBinary) return kInvalidImage;
  *module = const_cast<void*>(image);
  return kSuccess;
}

int ModuleGetFunction(const void** function, const void*, const char* name) {
  *function = NameOwnKernel(name);
  return kSuccess;
}

int LaunchKernel(const void* kernel, unsigned grid, unsigned, unsigned, unsigned block) {
  CountLaunch(kernel, grid, block);
  return kSuccess;
}

// The first members of CUlaunchConfig (cuda.h).
struct LaunchConfiguration {
  unsigned grid_x, grid_y, grid_z, block_x;
};

int LaunchKernelEx(const LaunchConfiguration* configuration, const void* kernel) {
  CountLaunch(kernel, configuration->grid_x, configuration->block_x);
  return kSuccess;
}

}  // namespace

std::span<const NamedFunction> DriverLaunchFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cuModuleLoadData, ModuleLoadData),
      CUDA_STANDIN_FUNCTION(cuModuleUnload, Succeed),
      CUDA_STANDIN_FUNCTION(cuModuleGetFunction, ModuleGetFunction),
      CUDA_STANDIN_FUNCTION(cuFuncSetAttribute, Succeed),
      CUDA_STANDIN_FUNCTION(cuLaunchKernel, LaunchKernel),
      CUDA_STANDIN_FUNCTION(cuLaunchKernelEx, LaunchKernelEx),
      CUDA_STANDIN_FUNCTION(cuStreamBatchMemOp, Succeed),
      CUDA_STANDIN_FUNCTION(cuStreamWriteValue32, Succeed),
      CUDA_STANDIN_FUNCTION(cuStreamWriteValue64, Succeed),
      CUDA_STANDIN_FUNCTION(cuStreamWaitValue32, Succeed),
      CUDA_STANDIN_FUNCTION(cuStreamWaitValue64, Succeed),
  };
  return kTable;
}

}  // namespace cuda_standin

extern "C" __attribute__((visibility("default"))) int cuGetProcAddress(const char* symbol, void** function,
                                                                       int, unsigned long long) {
  *function = const_cast<void*>(cuda_standin::FindDriverFunction(symbol));
  return *function == nullptr ? cuda_standin::kNotFound : cuda_standin::kSuccess;
}
