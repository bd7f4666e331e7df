// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA runtime's functions for streams, events and memory pools. All work is complete as soon
// as it is issued.
#include <atomic>
#include <cstdint>

#include "tests/real_nccl/cuda_standin/capture.h"
#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"
#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

// A stream, an event or a memory pool. Each has its own address and its own number.
struct Handle {
  uint64_t id;
  // The number of this event in the process's sequence of recorded events, from 1 on; 0 if never recorded.
  std::atomic<uint64_t> recorded_at{0};
};

// CUDA's reserved handles (null, legacy and per-thread default stream) are small numbers and no addresses.
constexpr uintptr_t kLargestReservedHandle = 16;

bool IsOurs(const void* handle) {
  return reinterpret_cast<uintptr_t>(handle) > kLargestReservedHandle;
}

int Succeed() {
  return kSuccess;
}

int CreateHandle(void** out) {
  static std::atomic<uint64_t> next_id{kLargestReservedHandle + 1};
  *out = new Handle{.id = next_id.fetch_add(1)};
  return kSuccess;
}

int DestroyHandle(void* handle) {
  if (IsOurs(handle)) delete static_cast<Handle*>(handle);
  return kSuccess;
}

int StreamGetId(Stream stream, unsigned long long* id) {
  *id = IsOurs(stream) ? static_cast<Handle*>(stream)->id : reinterpret_cast<uintptr_t>(stream);
  return kSuccess;
}

int StreamGetDevice(Stream, int* device) {
  *device = ThisPlace().device;
  return kSuccess;
}

int DeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}

int EventRecord(void* event) {
  static std::atomic<uint64_t> recorded{0};
  if (!IsOurs(event)) return kInvalidValue;
  static_cast<Handle*>(event)->recorded_at = recorded.fetch_add(1) + 1;
  return kSuccess;
}

// Nothing runs, so each event that the process records counts as one microsecond. A program that pairs the
// wrong events gets a wrong time.
int EventElapsedTime(float* milliseconds, void* begin, void* end) {
  if (!IsOurs(begin) || !IsOurs(end)) return kInvalidValue;
  const uint64_t from = static_cast<Handle*>(begin)->recorded_at, to = static_cast<Handle*>(end)->recorded_at;
  if (from == 0 || to == 0) return kInvalidValue;
  *milliseconds = static_cast<float>(static_cast<double>(to) - static_cast<double>(from)) * 1e-3f;
  return kSuccess;
}

int LaunchHostFunc(Stream, void (*function)(void*), void* data) {
  if (!Capturing()) function(data);  // a captured function would run only at a replay
  return kSuccess;
}

}  // namespace

std::span<const NamedFunction> RuntimeStreamFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cudaStreamCreate, CreateHandle),
      CUDA_STANDIN_FUNCTION(cudaStreamCreateWithFlags, CreateHandle),
      CUDA_STANDIN_FUNCTION(cudaStreamCreateWithPriority, CreateHandle),
      CUDA_STANDIN_FUNCTION(cudaStreamDestroy, DestroyHandle),
      CUDA_STANDIN_FUNCTION(cudaStreamSynchronize, Succeed),
      CUDA_STANDIN_FUNCTION(cudaStreamQuery, Succeed),
      CUDA_STANDIN_FUNCTION(cudaStreamWaitEvent, Succeed),
      CUDA_STANDIN_FUNCTION(cudaStreamGetId, StreamGetId),
      CUDA_STANDIN_FUNCTION(cudaStreamGetDevice, StreamGetDevice),
      CUDA_STANDIN_FUNCTION(cudaDeviceGetStreamPriorityRange, DeviceGetStreamPriorityRange),
      CUDA_STANDIN_FUNCTION(cudaEventCreate, CreateHandle),
      CUDA_STANDIN_FUNCTION(cudaEventCreateWithFlags, CreateHandle),
      CUDA_STANDIN_FUNCTION(cudaEventDestroy, DestroyHandle),
      CUDA_STANDIN_FUNCTION(cudaEventRecord, EventRecord),
      CUDA_STANDIN_FUNCTION(cudaEventRecordWithFlags, EventRecord),
      CUDA_STANDIN_FUNCTION(cudaEventQuery, Succeed),
      CUDA_STANDIN_FUNCTION(cudaEventSynchronize, Succeed),
      CUDA_STANDIN_FUNCTION(cudaEventElapsedTime, EventElapsedTime),
      CUDA_STANDIN_FUNCTION(cudaMemPoolCreate, CreateHandle),
      CUDA_STANDIN_FUNCTION(cudaMemPoolDestroy, DestroyHandle),
      CUDA_STANDIN_FUNCTION(cudaMemPoolSetAttribute, Succeed),
      CUDA_STANDIN_FUNCTION(cudaMemPoolTrimTo, Succeed),
      CUDA_STANDIN_FUNCTION(cudaLaunchHostFunc, LaunchHostFunc),
  };
  return kTable;
}

}  // namespace cuda_standin
