// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA runtime's functions for memory. Copies happen at once, on the calling thread.
#include <unistd.h>

#include <cstring>

#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/device_use.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/machine.h"
#include "tests/real_nccl/cuda_standin/memory.h"

namespace cuda_standin {
namespace {

int Succeed() {
  return kSuccess;
}

int Allocate(void** out, size_t bytes, MemoryKind kind) {
  *out = AllocateMemory(bytes, kind);
  return *out == nullptr ? kOutOfMemory : kSuccess;
}

int Malloc(void** out, size_t bytes) {
  const int error = Allocate(out, bytes, MemoryKind::kDevice);
  const auto block = FindBlock(*out);
  if (block) CountDeviceMemory({block->device, block->node}, static_cast<int64_t>(block->bytes));
  return error;
}
int MallocAsync(void** out, size_t bytes, Stream) {
  return Malloc(out, bytes);
}
int MallocFromPoolAsync(void** out, size_t bytes, void*, Stream) {
  return Malloc(out, bytes);
}
int HostAlloc(void** out, size_t bytes, unsigned) {
  return Allocate(out, bytes, MemoryKind::kHost);
}
int MallocHost(void** out, size_t bytes) {
  return Allocate(out, bytes, MemoryKind::kHost);
}
int MallocManaged(void** out, size_t bytes, unsigned) {
  return Allocate(out, bytes, MemoryKind::kManaged);
}

int Free(void* address) {
  const auto block = FindBlock(address);
  if (block && block->kind == MemoryKind::kDevice && !block->shared())
    CountDeviceMemory({block->device, block->node}, -static_cast<int64_t>(block->bytes));
  FreeMemory(address);
  return kSuccess;
}

int HostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}

int Memcpy(void* to, const void* from, size_t bytes) {
  if (!MakeUsable(from, bytes) || !MakeUsable(to, bytes)) return kOutOfMemory;
  std::memmove(to, from, bytes);
  return kSuccess;
}

int Memset(void* address, int value, size_t bytes) {
  return FillMemory(address, value, bytes) ? kSuccess : kOutOfMemory;
}

// The layout of cudaPointerAttributes (driver_types.h).
struct PointerAttributes {
  int kind;
  int device;
  const void* device_pointer;
  const void* host_pointer;
};

int PointerGetAttributes(PointerAttributes* out, const void* address) {
  constexpr int kUnregistered = 0, kNoDevice = -2;
  const auto block = FindBlock(address);
  if (!block) {
    *out = {kUnregistered, kNoDevice, nullptr, address};
    return kSuccess;
  }
  const bool on_device = block->kind == MemoryKind::kDevice;
  *out = {static_cast<int>(block->kind), block->device, address, on_device ? nullptr : address};
  return kSuccess;
}

int MemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = *total_bytes = static_cast<size_t>(ThisMachine().memory_gib) << 30;
  return kSuccess;
}

// The stand-in's content of the 64 bytes of a cudaIpcMemHandle_t.
struct IpcHandle {
  uint64_t process;
  uint64_t address;
  uint64_t bytes;
  uint64_t unused[5];
};
static_assert(sizeof(IpcHandle) == 64, "cudaIpcMemHandle_t");

int IpcGetMemHandle(IpcHandle* handle, void* address) {
  const auto block = FindBlock(address);
  if (!block) return kInvalidValue;
  *handle = {static_cast<uint64_t>(getpid()), block->address, block->bytes, {}};
  return kSuccess;
}

// Memory of another process is replaced by new memory of the same size. Its content does not matter, because
// no kernel reads it.
int IpcOpenMemHandle(void** out, IpcHandle handle, unsigned) {
  if (handle.process != static_cast<uint64_t>(getpid()))
    return Allocate(out, handle.bytes, MemoryKind::kDevice);
  *out = reinterpret_cast<void*>(handle.address);
  return kSuccess;
}

}  // namespace

std::span<const NamedFunction> RuntimeMemoryFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cudaMalloc, Malloc),
      CUDA_STANDIN_FUNCTION(cudaMallocAsync, MallocAsync),
      CUDA_STANDIN_FUNCTION(cudaMallocFromPoolAsync, MallocFromPoolAsync),
      CUDA_STANDIN_FUNCTION(cudaMallocManaged, MallocManaged),
      CUDA_STANDIN_FUNCTION(cudaHostAlloc, HostAlloc),
      CUDA_STANDIN_FUNCTION(cudaMallocHost, MallocHost),
      CUDA_STANDIN_FUNCTION(cudaFree, Free),
      CUDA_STANDIN_FUNCTION(cudaFreeAsync, Free),
      CUDA_STANDIN_FUNCTION(cudaFreeHost, Free),
      CUDA_STANDIN_FUNCTION(cudaHostRegister, Succeed),
      CUDA_STANDIN_FUNCTION(cudaHostUnregister, Succeed),
      CUDA_STANDIN_FUNCTION(cudaHostGetDevicePointer, HostGetDevicePointer),
      CUDA_STANDIN_FUNCTION(cudaMemcpy, Memcpy),
      CUDA_STANDIN_FUNCTION(cudaMemcpyAsync, Memcpy),
      CUDA_STANDIN_FUNCTION(cudaMemset, Memset),
      CUDA_STANDIN_FUNCTION(cudaMemsetAsync, Memset),
      CUDA_STANDIN_FUNCTION(cudaPointerGetAttributes, PointerGetAttributes),
      CUDA_STANDIN_FUNCTION(cudaMemGetInfo, MemGetInfo),
      CUDA_STANDIN_FUNCTION(cudaIpcGetMemHandle, IpcGetMemHandle),
      CUDA_STANDIN_FUNCTION(cudaIpcOpenMemHandle, IpcOpenMemHandle),
      CUDA_STANDIN_FUNCTION(cudaIpcCloseMemHandle, Succeed),
  };
  return kTable;
}

}  // namespace cuda_standin
