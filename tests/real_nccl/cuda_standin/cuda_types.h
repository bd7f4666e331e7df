// SPDX-License-Identifier: Apache-2.0
// Declares the public CUDA types that NCCL passes to the stand-in. The stand-in uses these declarations
// instead of CUDA's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_standin {

// Values of cudaError_t and CUresult. Each number below has the same meaning in both types.
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
using DriverHandle = unsigned long long;  // stands for CUdeviceptr and CUmemGenericAllocationHandle

// The device attributes that NCCL reads. cudaDeviceAttr and CUdevice_attribute use the same numbers.
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

// Returns the value of an attribute. Returns 0 for an attribute that the machine does not have, such as
// DMA-BUF or the host NUMA id.
int AttributeValue(int attribute, int device);

}  // namespace cuda_standin
