// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA driver's functions for devices, contexts and pointer attributes.
#include <cstring>

#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/memory.h"
#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

int Succeed() {
  return kSuccess;
}

int DriverGetVersion(int* version) {
  *version = ThisMachine().driver_version;
  return kSuccess;
}

int DeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}

int DeviceGetCount(int* count) {
  *count = static_cast<int>(ThisMachine().gpu_buses.size());
  return kSuccess;
}

int DeviceGetAttribute(int* value, int attribute, int device) {
  *value = AttributeValue(attribute, device);
  return kSuccess;
}

// The UUID depends on the device and on the node. NCCL treats two ranks with the same UUID as two ranks on
// one GPU.
int DeviceGetUuid(char* uuid, int device) {
  std::memset(uuid, 0, 16);
  uuid[0] = static_cast<char>(device + 1);
  uuid[1] = static_cast<char>(ThisPlace().node + 1);
  return kSuccess;
}

int GetErrorString(int, const char** text) {
  *text = "error of the CUDA stand-in";
  return kSuccess;
}

// A context handle is the device number plus kFirstContext, so that no context is null.
constexpr uintptr_t kFirstContext = 0x1000;

int CtxGetCurrent(void** context) {
  *context = reinterpret_cast<void*>(kFirstContext + static_cast<uintptr_t>(ThisPlace().device));
  return kSuccess;
}

int CtxSetCurrent(void* context) {
  if (context != nullptr)
    ThisPlace().device = static_cast<int>(reinterpret_cast<uintptr_t>(context) - kFirstContext);
  return kSuccess;
}

int CtxGetDevice(int* device) {
  *device = ThisPlace().device;
  return kSuccess;
}

int MemGetAddressRange(DriverHandle* start, size_t* bytes, DriverHandle address) {
  const auto block = FindBlock(reinterpret_cast<void*>(address));
  if (!block) return kInvalidValue;
  if (start != nullptr) *start = block->address;
  if (bytes != nullptr) *bytes = block->bytes;
  return kSuccess;
}

// The values of CUpointer_attribute that NCCL reads.
enum PointerAttribute : int {
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kBufferId = 7,
  kDeviceOrdinal = 9,
  kLegacyIpcCapable = 10,
  kMapped = 13,
  kAllowedHandleTypes = 14,
  kGpuDirectCapable = 15,
};

int PointerGetAttribute(void* out, int attribute, DriverHandle address) {
  const auto block = FindBlock(reinterpret_cast<void*>(address));
  if (!block) return kInvalidValue;
  const auto number = [out](int value) { std::memcpy(out, &value, sizeof value); };
  const auto wide = [out](DriverHandle value) { std::memcpy(out, &value, sizeof value); };
  switch (attribute) {
    case kMemoryType:
      number(block->kind == MemoryKind::kDevice ? 2 : 1);
      break;
    case kDevicePointer:
    case kHostPointer:
      wide(address);
      break;
    case kBufferId:
      wide(block->address);
      break;
    case kDeviceOrdinal:
      number(block->device);
      break;
    case kMapped:
    case kGpuDirectCapable:
      number(1);
      break;
    case kLegacyIpcCapable:  // memory of cudaMalloc is capable, virtual memory is not
      number(block->shared() ? 0 : 1);
      break;
    case kAllowedHandleTypes:
      wide(block->shared() ? 1 : 0);
      break;
    default:
      number(0);
  }
  return kSuccess;
}

int GetProcAddress(const char* symbol, void** function, int, unsigned long long, int* status) {
  *function = const_cast<void*>(FindDriverFunction(symbol));
  if (status != nullptr) *status = 0;
  return *function == nullptr ? kNotFound : kSuccess;
}

}  // namespace

std::span<const NamedFunction> DriverDeviceFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cuInit, Succeed),
      CUDA_STANDIN_FUNCTION(cuDriverGetVersion, DriverGetVersion),
      CUDA_STANDIN_FUNCTION(cuDeviceGet, DeviceGet),
      CUDA_STANDIN_FUNCTION(cuDeviceGetCount, DeviceGetCount),
      CUDA_STANDIN_FUNCTION(cuDeviceGetAttribute, DeviceGetAttribute),
      CUDA_STANDIN_FUNCTION(cuDeviceGetUuid, DeviceGetUuid),
      CUDA_STANDIN_FUNCTION(cuGetErrorString, GetErrorString),
      CUDA_STANDIN_FUNCTION(cuGetErrorName, GetErrorString),
      CUDA_STANDIN_FUNCTION(cuCtxCreate, CtxGetCurrent),
      CUDA_STANDIN_FUNCTION(cuCtxDestroy, Succeed),
      CUDA_STANDIN_FUNCTION(cuCtxGetCurrent, CtxGetCurrent),
      CUDA_STANDIN_FUNCTION(cuCtxSetCurrent, CtxSetCurrent),
      CUDA_STANDIN_FUNCTION(cuCtxGetDevice, CtxGetDevice),
      CUDA_STANDIN_FUNCTION(cuMemGetAddressRange, MemGetAddressRange),
      CUDA_STANDIN_FUNCTION(cuPointerGetAttribute, PointerGetAttribute),
      CUDA_STANDIN_FUNCTION(cuGetProcAddress, GetProcAddress),
  };
  return kTable;
}

}  // namespace cuda_standin
