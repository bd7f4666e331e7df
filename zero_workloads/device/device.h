// SPDX-License-Identifier: Apache-2.0
// The one seam between the trainer and the machine: communication streams, events and storage, either on host
// memory (device_host.cc) or on CUDA (device_cuda.cc). CMake compiles one of the two. Compute is what
// LibTorch runs: on the host it is done when the call returns, on CUDA it is queued in LibTorch's current
// stream.
//
// Functions are called on the thread that trains unless they say otherwise.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"
#include "zero_workloads/memory/memory_cap.h"

namespace dynamiccl::zero {

// Selects where this rank's tensors live. kUnavailable if the machine has no such device. Call it once,
// before the first tensor.
Result<at::Device> SelectDevice(int local_rank);

// Makes memory_counters.h count all device memory that LibTorch allocates from now on. Call it once, after
// SelectDevice and after anything that replaces LibTorch's allocator.
void CountDeviceMemory();

struct EventState;
// Destroys the event with the library that made it.
struct EventDeleter {
  void operator()(EventState* state) const;
};
// A point in a communication stream; null until recorded.
using Event = std::unique_ptr<EventState, EventDeleter>;

// An ordered queue of communication, owned by a ProcessGroup. Failures throw std::runtime_error.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t handle() const { return handle_; }
  // Whatever is issued to this stream from now on starts after the compute work issued so far.
  void StartAfterCompute();
  // An event that happens when everything issued so far is done.
  Event Record();

 private:
  cudaStream_t handle_ = nullptr;
};

// Makes compute work that is issued from now on start after the event: the host waits, CUDA queues the wait.
// A null event has no effect.
void StartComputeAfter(const Event& event);
// Blocks until the compute work issued so far is done.
void FinishCompute();
// `bytes` bytes of host memory, uint8, which the device copies from and to without a detour (pinned on CUDA).
at::Tensor HostBuffer(int64_t bytes);
// Blocks until the event has happened; it must not be null. `check` is called during or after the wait, and
// throws if the event will never happen.
void WaitOnHost(const Event& event, const std::function<void()>& check);
// Nanoseconds for which compute waited for communication since the last call.
int64_t TakeComputeWaitNanoseconds();

// Changes the size of the memory behind a tensor without touching the tensors and autograd records that refer
// to it. 0 frees the memory; growing from 0 leaves the content undefined.
void ResizeStorage(const at::Tensor& tensor, int64_t bytes);

// A one-dimensional tensor in host memory that is not counted as the device's, with undefined content: a
// HostBuffer on CUDA, otherwise memory that neither CapDeviceMemory nor CountDeviceMemory sees.
at::Tensor NewHostTensor(int64_t elements, at::ScalarType type);

// The device's total memory in bytes; 0 for host memory, which ranks share with everything else.
int64_t DeviceMemoryBytes();

// Makes allocations beyond `bytes` for this rank's tensors throw c10::OutOfMemoryError. Call it before the
// first tensor. `allocator` applies to host memory (memory/memory_cap.h); CUDA has LibTorch's own.
Status CapDeviceMemory(int64_t bytes, MemoryAllocator allocator);

// The largest resident size of this process (host), or the largest allocation on its device (CUDA), so far.
int64_t PeakBytes();

}  // namespace dynamiccl::zero
