// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA runtime's functions for kernels, and those that find the driver's functions.
#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/launch.h"
#include "tests/real_nccl/cuda_standin/machine.h"

namespace cuda_standin {
namespace {

int Succeed() {
  return kSuccess;
}

// The layouts of dim3 and of the first members of cudaLaunchConfig_t (driver_types.h).
struct Dimensions {
  unsigned x, y, z;
};
struct LaunchConfiguration {
  Dimensions grid, block;
};

int LaunchKernel(const void* kernel, Dimensions grid, Dimensions block) {
  CountLaunch(kernel, grid.x, block.x);
  return kSuccess;
}

int LaunchKernelEx(const LaunchConfiguration* configuration, const void* kernel) {
  return LaunchKernel(kernel, configuration->grid, configuration->block);
}

// The members of cudaFuncAttributes (driver_types.h) that are equal in all releases of CUDA.
struct FunctionAttributes {
  size_t shared_bytes;
  size_t constant_bytes;
  size_t local_bytes;
  int max_threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode;
  int max_dynamic_shared_bytes;
  int preferred_carveout;
};

int FuncGetAttributes(FunctionAttributes* out, const void*) {
  const Machine& machine = ThisMachine();
  // NCCL's kernels are built for 96 registers.
  constexpr int kMaxThreads = 1024, kRegisters = 96, kNoPreference = -1;
  *out = {0,
          0,
          0,
          kMaxThreads,
          kRegisters,
          machine.architecture,
          machine.architecture,
          0,
          machine.shared_memory_bytes,
          kNoPreference};
  return kSuccess;
}

// The driver's handle of a kernel is the address of the kernel's host function.
int GetFuncBySymbol(const void** function, const void* symbol) {
  *function = symbol;
  return kSuccess;
}

int EntryPoint(const char* symbol, void** function, int* status) {
  *function = const_cast<void*>(FindDriverFunction(symbol));
  if (status != nullptr) *status = 0;  // cudaDriverEntryPointSuccess
  return *function == nullptr ? kOutOfMemory : kSuccess;
}

int GetDriverEntryPoint(const char* symbol, void** function, unsigned long long, int* status) {
  return EntryPoint(symbol, function, status);
}

int GetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                 int* status) {
  return EntryPoint(symbol, function, status);
}

}  // namespace

std::span<const NamedFunction> RuntimeLaunchFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cudaFuncGetAttributes, FuncGetAttributes),
      CUDA_STANDIN_FUNCTION(cudaFuncSetAttribute, Succeed),
      CUDA_STANDIN_FUNCTION(cudaLaunchKernel, LaunchKernel),
      CUDA_STANDIN_FUNCTION(cudaLaunchKernelExC, LaunchKernelEx),
      CUDA_STANDIN_FUNCTION(cudaGetFuncBySymbol, GetFuncBySymbol),
      CUDA_STANDIN_FUNCTION(cudaGetDriverEntryPoint, GetDriverEntryPoint),
      CUDA_STANDIN_FUNCTION(cudaGetDriverEntryPointByVersion, GetDriverEntryPointByVersion),
  };
  return kTable;
}

}  // namespace cuda_standin
