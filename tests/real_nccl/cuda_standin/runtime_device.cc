// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA runtime's functions for devices, their properties and errors.
#include <cctype>
#include <cstdio>
#include <cstring>

#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

int DeviceCount() {
  return static_cast<int>(ThisMachine().gpu_buses.size());
}

int Succeed() {
  return kSuccess;
}

int GetDeviceCount(int* count) {
  *count = DeviceCount();
  return kSuccess;
}

int SetDevice(int device) {
  if (device < 0 || device >= DeviceCount()) return kInvalidDevice;
  ThisPlace().device = device;
  return kSuccess;
}

int GetDevice(int* device) {
  *device = ThisPlace().device;
  return kSuccess;
}

int GetVersion(int* version) {
  *version = ThisMachine().driver_version;
  return kSuccess;
}

const char* GetErrorString(int error) {
  return error == kSuccess ? "no error" : "error of the CUDA stand-in";
}

int DeviceGetAttribute(int* value, int attribute, int device) {
  *value = AttributeValue(attribute, device);
  return kSuccess;
}

// The first members of cudaDeviceProp, which are equal in CUDA 12 and 13. Later members differ, so the
// stand-in does not write them.
struct DevicePropertiesHead {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_mask;
  size_t total_memory;
  size_t shared_memory_per_block;
  int registers_per_block;
  int warp_size;
  size_t memory_pitch;
  int max_threads_per_block;
  int max_threads[3];
  int max_grid[3];
  int clock_rate;  // padding in CUDA 13
  size_t total_constant_memory;
  int major;
  int minor;
};
static_assert(offsetof(DevicePropertiesHead, total_constant_memory) == 352 &&
                  offsetof(DevicePropertiesHead, major) == 360,
              "cudaDeviceProp of CUDA 12 and 13 (driver_types.h)");

int GetDeviceProperties(DevicePropertiesHead* properties, int device) {
  const Machine& machine = ThisMachine();
  DevicePropertiesHead head = {};
  std::snprintf(head.name, sizeof head.name, "%s (no GPU: CUDA stand-in)", machine.name.c_str());
  head.uuid[0] = static_cast<char>(device + 1);
  head.total_memory = static_cast<size_t>(machine.memory_gib) << 30;
  head.shared_memory_per_block = static_cast<size_t>(AttributeValue(kMaxSharedMemoryPerBlock, device));
  head.registers_per_block = AttributeValue(kMaxRegistersPerBlock, device);
  head.warp_size = AttributeValue(kWarpSize, device);
  head.max_threads_per_block = AttributeValue(kMaxThreadsPerBlock, device);
  head.total_constant_memory = 65536;
  head.major = machine.architecture / 10;
  head.minor = machine.architecture % 10;
  std::memcpy(properties, &head, sizeof head);
  return kSuccess;
}

int DeviceGetPciBusId(char* text, int bytes, int device) {
  if (device < 0 || device >= DeviceCount()) return kInvalidDevice;
  std::snprintf(text, static_cast<size_t>(bytes), "%s", PciAddress(ThisMachine(), device).c_str());
  for (char* letter = text; *letter != '\0'; ++letter) *letter = static_cast<char>(std::toupper(*letter));
  return kSuccess;
}

int DeviceGetByPciBusId(int* device, const char* address) {
  *device = DeviceAtPciAddress(ThisMachine(), address);
  return *device < 0 ? kInvalidDevice : kSuccess;
}

int DeviceCanAccessPeer(int* can, int, int) {
  *can = ThisMachine().lacks.peer_access ? 0 : 1;
  return kSuccess;
}

int DeviceGetPeerAttribute(int* value, int, int, int) {
  *value = 1;
  return kSuccess;
}

}  // namespace

int AttributeValue(int attribute, int device) {
  const Machine& machine = ThisMachine();
  switch (attribute) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kMaxSharedMemoryPerBlock:
      return 49152;
    case kWarpSize:
      return 32;
    case kMaxRegistersPerBlock:
      return 65536;
    case kMultiProcessorCount:
      return machine.multiprocessors;
    case kPciBusId:
      return device >= 0 && device < DeviceCount() ? machine.gpu_buses[device] : 0;
    case kMaxThreadsPerMultiProcessor:
      return 2048;
    case kComputeCapabilityMajor:
      return machine.architecture / 10;
    case kComputeCapabilityMinor:
      return machine.architecture % 10;
    case kMaxSharedMemoryPerMultiprocessor:
      return machine.shared_memory_bytes + 1024;  // the system reserves 1 KiB
    case kMaxSharedMemoryPerBlockOptin:
      return machine.shared_memory_bytes;
    case kMulticast:
      return machine.multicast;
    case kFabricHandles:
      return machine.nvlink_domain_nodes > 0 ? 1 : 0;
    case kUnifiedAddressing:
    case kVirtualMemoryManagement:
    case kPosixFileHandles:
    case kGpuDirectRdmaWithVirtualMemory:
    case kGpuDirectRdma:
      return 1;
    default:
      return 0;
  }
}

std::span<const NamedFunction> RuntimeDeviceFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cudaGetDeviceCount, GetDeviceCount),
      CUDA_STANDIN_FUNCTION(cudaSetDevice, SetDevice),
      CUDA_STANDIN_FUNCTION(cudaGetDevice, GetDevice),
      CUDA_STANDIN_FUNCTION(cudaInitDevice, Succeed),
      CUDA_STANDIN_FUNCTION(cudaDriverGetVersion, GetVersion),
      CUDA_STANDIN_FUNCTION(cudaRuntimeGetVersion, GetVersion),
      CUDA_STANDIN_FUNCTION(cudaGetErrorString, GetErrorString),
      CUDA_STANDIN_FUNCTION(cudaGetErrorName, GetErrorString),
      CUDA_STANDIN_FUNCTION(cudaGetLastError, Succeed),
      CUDA_STANDIN_FUNCTION(cudaPeekAtLastError, Succeed),
      CUDA_STANDIN_FUNCTION(cudaDeviceGetAttribute, DeviceGetAttribute),
      CUDA_STANDIN_FUNCTION(cudaGetDeviceProperties, GetDeviceProperties),
      CUDA_STANDIN_FUNCTION(cudaGetDeviceProperties_v2, GetDeviceProperties),
      CUDA_STANDIN_FUNCTION(cudaDeviceGetPCIBusId, DeviceGetPciBusId),
      CUDA_STANDIN_FUNCTION(cudaDeviceGetByPCIBusId, DeviceGetByPciBusId),
      CUDA_STANDIN_FUNCTION(cudaDeviceCanAccessPeer, DeviceCanAccessPeer),
      CUDA_STANDIN_FUNCTION(cudaDeviceEnablePeerAccess, Succeed),
      CUDA_STANDIN_FUNCTION(cudaDeviceGetP2PAttribute, DeviceGetPeerAttribute),
      CUDA_STANDIN_FUNCTION(cudaDeviceSynchronize, Succeed),
      CUDA_STANDIN_FUNCTION(cudaDeviceSetLimit, Succeed),
      CUDA_STANDIN_FUNCTION(cudaDeviceReset, Succeed),
  };
  return kTable;
}

}  // namespace cuda_standin
