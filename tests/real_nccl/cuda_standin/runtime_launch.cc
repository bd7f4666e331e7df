// SPDX-License-Identifier: Apache-2.0
// CUDA runtime: kernels, and the way to the driver's functions.
#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/launch.h"
#include "tests/real_nccl/cuda_standin/machine.h"

namespace cuda_standin {
namespace {

int Succeed() {
  return kSuccess;
}

// dim3 and the head of cudaLaunchConfig_t (driver_types.h).
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

// cudaFuncAttributes (driver_types.h), as far as it is equal in all releases.
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
  constexpr int kMaxThreads = 1024, kRegisters = 96,
                kNoPreference = -1;  // 96: what NCCL's kernels are built for
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

// The driver's name of a kernel is its host symbol here.
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
