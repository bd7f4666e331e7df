// SPDX-License-Identifier: Apache-2.0
// CUDA driver: kernels and memory operations in streams; and the names that NCCL before 2.21 looks up in
// libcuda.so.1.
#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/launch.h"

namespace cuda_standin {
namespace {

int Succeed() {
  return kSuccess;
}

int LaunchKernel() {
  CountLaunch();
  return kSuccess;
}

}  // namespace

std::span<const NamedFunction> DriverLaunchFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cuLaunchKernel, LaunchKernel),
      CUDA_STANDIN_FUNCTION(cuLaunchKernelEx, LaunchKernel),
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
