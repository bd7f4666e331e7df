// SPDX-License-Identifier: Apache-2.0
// The public CUDA types that cross the stand-in's border, by our own declarations: no CUDA header is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_standin {

// cudaError_t and CUresult: the numbers below mean the same in both.
enum CudaError : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kIllegalState = 401,
  kNotFound = 500,
  kNotPermitted = 800,
  kNotSupported = 801,
};

using Stream = void*;
using DriverHandle = unsigned long long;  // CUdeviceptr and CUmemGenericAllocationHandle

// cudaDeviceAttr and CUdevice_attribute, which share their numbers; those NCCL asks for.
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kMultiProcessorCount = 16,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kMaxThreadsPerMultiProcessor = 39,
  kUnifiedAddressing = 41,
  kPciDomainId = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxSharedMemoryPerBlockOptin = 97,
  kVirtualMemoryManagement = 102,
  kPosixFileHandles = 103,
  kGpuDirectRdmaWithVirtualMemory = 110,
  kGpuDirectRdma = 116,
  kFabricHandles = 128,
  kMulticast = 132,
};

// The value, 0 for an attribute that the machine has not (DMA-BUF, host NUMA id among them).
int AttributeValue(int attribute, int device);

}  // namespace cuda_standin
