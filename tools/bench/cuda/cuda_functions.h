// SPDX-License-Identifier: Apache-2.0
// The few functions of the CUDA runtime and driver that measuring needs, loaded with dlopen, with CUDA's
// names and numbers. Nothing in the project links CUDA.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/dynamic_library.h"
#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl::cuda {

// cudaError_t and CUresult; 0 is success in both.
using Error = int;
using Event = struct CUevent_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;

// Values of CUDA's enums cudaMemcpyKind and cudaDeviceAttr, and of its flags for cudaHostAlloc and streams.
inline constexpr int kHostToDevice = 1;
inline constexpr int kDeviceToHost = 2;
inline constexpr unsigned kHostAllocMapped = 2;
inline constexpr unsigned kStreamNonBlocking = 1;
// cudaDevAttrMultiProcessorCount and cudaDevAttrMaxSharedMemoryPerBlockOptin.
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kMaxSharedMemoryPerBlockOptin = 97;
// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
inline constexpr int kMaxDynamicSharedBytes = 8;

// Expands X(name, parameters) for each function of the CUDA runtime that is used. All releases since CUDA 10
// have these functions.
#define DYNAMICCL_CUDA_RUNTIME_FUNCTIONS(X)                \
  X(GetDeviceCount, (int*))                                \
  X(SetDevice, (int))                                      \
  X(DeviceGetAttribute, (int*, int attribute, int device)) \
  X(Malloc, (void**, size_t))                              \
  X(Free, (void*))                                         \
  X(HostAlloc, (void**, size_t, unsigned flags))           \
  X(FreeHost, (void*))                                     \
  X(Memcpy, (void*, const void*, size_t, int))             \
  X(Memset, (void*, int, size_t))                          \
  X(StreamCreate, (cudaStream_t*))                         \
  X(StreamCreateWithFlags, (cudaStream_t*, unsigned))      \
  X(StreamDestroy, (cudaStream_t))                         \
  X(StreamSynchronize, (cudaStream_t))                     \
  X(EventCreate, (Event*))                                 \
  X(EventDestroy, (Event))                                 \
  X(EventRecord, (Event, cudaStream_t))                    \
  X(EventElapsedTime, (float*, Event, Event))
#define DYNAMICCL_CUDA_DRIVER_FUNCTIONS(X)                                                            \
  X(ModuleLoadData, (Module*, const void* image))                                                     \
  X(ModuleUnload, (Module))                                                                           \
  X(ModuleGetFunction, (Function*, Module, const char*))                                              \
  X(FuncSetAttribute, (Function, int attribute, int value))                                           \
  X(GetErrorString, (Error, const char**))                                                            \
  X(LaunchKernel,                                                                                     \
    (Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, cudaStream_t, void** parameters, void** extra))

// The CUDA runtime of this machine: memory, streams and events. Its members are CUDA's functions without the
// prefix "cuda".
class Runtime {
 public:
  // Loads libcudart.so, libcudart.so.13 or libcudart.so.12 by the loader's rules (LD_LIBRARY_PATH). The error
  // is kUnavailable when none is found.
  static Result<std::shared_ptr<const Runtime>> Open();

#define DYNAMICCL_MEMBER(name, parameters) Error(*name) parameters = nullptr;
  DYNAMICCL_CUDA_RUNTIME_FUNCTIONS(DYNAMICCL_MEMBER)
  // Converts a CUDA result into an error that has the call's name and CUDA's text.
  Status Check(Error error, const char* call) const;

 private:
  DynamicLibrary library_;
  const char* (*error_string_)(Error) = nullptr;
};

// The CUDA driver, which loads code and launches it. libcuda.so.1 comes with NVIDIA's driver.
class Driver {
 public:
  static Result<std::shared_ptr<const Driver>> Open();

  DYNAMICCL_CUDA_DRIVER_FUNCTIONS(DYNAMICCL_MEMBER)
#undef DYNAMICCL_MEMBER
  Status Check(Error error, const char* call) const;

 private:
  DynamicLibrary library_;
};

}  // namespace dynamiccl::cuda
