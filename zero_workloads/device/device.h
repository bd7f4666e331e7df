// SPDX-License-Identifier: Apache-2.0
// The only interface between the trainer and the machine: communication streams, events and storage, either
// on host memory (device_host.cc) or on CUDA (device_cuda.cc). CMake compiles one of the two. LibTorch runs
// the compute work: on the host it is done when the call returns, on CUDA it is queued in LibTorch's current
// stream.
//
// Functions are called on the training thread unless they say otherwise.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"
#include "zero_workloads/memory/memory_cap.h"

namespace dynamiccl::zero {

// Selects where this rank's tensors live. Returns kUnavailable if the machine has no such device. Call it
// once, before the first tensor is made.
Result<at::Device> SelectDevice(int local_rank);

// Makes memory_counters.h count all device memory that LibTorch allocates after this call. Call it once,
// after SelectDevice and after any replacement of LibTorch's allocator.
void CountDeviceMemory();

struct EventState;
// Destroys the event with the library that made it.
struct EventDeleter {
  void operator()(EventState* state) const;
};
// A point in a communication stream. The pointer is null until the event is recorded.
using Event = std::unique_ptr<EventState, EventDeleter>;

// An ordered queue of communication, owned by a ProcessGroup. Failures throw std::runtime_error.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t handle() const { return handle_; }
  // Work issued to this stream after this call starts after the compute work issued so far.
  void StartAfterCompute();
  // Work issued to this stream after this call starts after the event, which may belong to another stream.
  // The caller does not wait. A null event has no effect.
  void StartAfter(const Event& event);
  // Returns an event that happens when everything issued to this stream so far is done.
  Event Record();

 private:
  cudaStream_t handle_ = nullptr;
};

// Compute work issued after this call starts after the event. On host memory the calling thread waits. On
// CUDA the wait is queued in the compute stream. A null event has no effect.
void StartComputeAfter(const Event& event);
// Blocks until the compute work issued so far is done.
void FinishCompute();
// Allocates `bytes` bytes of host memory as uint8, from and to which the device can copy directly (pinned on
// CUDA).
at::Tensor HostBuffer(int64_t bytes);
// Blocks until the event has happened; the event must not be null. `check` is called during or after the
// wait, and throws if the event can no longer happen.
void WaitOnHost(const Event& event, const std::function<void()>& check);
// Nanoseconds for which compute waited for communication since the last call.
int64_t TakeComputeWaitNanoseconds();

// Changes the size of the memory behind a tensor. The tensors and autograd records that refer to this memory
// stay as they are. 0 frees the memory. After growing from 0 the content is undefined.
void ResizeStorage(const at::Tensor& tensor, int64_t bytes);

// Returns a one-dimensional tensor in host memory, with undefined content. The memory is not counted as the
// device's: it is a HostBuffer on CUDA, and otherwise memory that neither CapDeviceMemory nor
// CountDeviceMemory sees.
at::Tensor NewHostTensor(int64_t elements, at::ScalarType type);

// The device's total memory in bytes; 0 for host memory, which ranks share with everything else.
int64_t DeviceMemoryBytes();

// Makes allocations of this rank's tensors throw c10::OutOfMemoryError when they exceed `bytes` in total.
// Call it before the first tensor. `allocator` applies to host memory only (memory/memory_cap.h): on CUDA,
// LibTorch's own allocator stays in use.
Status CapDeviceMemory(int64_t bytes, MemoryAllocator allocator);

// The peak memory of this process so far: its largest resident size (host), or the most bytes that LibTorch
// had allocated on its device (CUDA).
int64_t PeakBytes();

}  // namespace dynamiccl::zero
