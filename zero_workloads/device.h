// SPDX-License-Identifier: Apache-2.0
// The one seam between the trainer and the machine: communication streams, events and storage, on host memory
// (device_host.cc) or on CUDA (device_cuda.cc); CMake compiles one of the two. Compute is what LibTorch runs:
// on the host it is done when the call returns, on CUDA it is in LibTorch's current stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "src/base/status.h"
#include "src/nccl_abi/nccl_api.h"
#include "zero_workloads/memory/memory_cap.h"

namespace dynamiccl::zero {

// Where this rank's tensors live. Fails where the machine has no such device. Called once, before the first
// tensor.
Result<at::Device> SelectDevice(int local_rank);

// From here on memory_counters.h knows of all device memory that LibTorch allocates. Called once, on the
// thread that trains, after SelectDevice and whatever replaces LibTorch's allocator.
void CountDeviceMemory();

struct EventState;
struct EventDeleter {
  void operator()(EventState* state) const;
};
// A point in a communication stream; empty until recorded.
using Event = std::unique_ptr<EventState, EventDeleter>;

// An ordered queue of communication. Failures throw std::runtime_error.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t handle() const { return handle_; }
  // What is issued to this stream from here on starts after the compute issued so far.
  void StartAfterCompute();
  Event Record();

 private:
  cudaStream_t handle_ = nullptr;
};

// Compute issued from here on starts after the event: the host waits, CUDA queues the wait.
void StartComputeAfter(const Event& event);
// Returns when the compute issued so far is done.
void FinishCompute();
// `bytes` bytes of host memory that the device copies from and to without a detour (pinned on CUDA).
at::Tensor HostBuffer(int64_t bytes);
// Returns when the event has happened. `check` is called while or after waiting and throws when the event
// will never happen.
void WaitOnHost(const Event& event, const std::function<void()>& check);
// Nanoseconds that compute stood still for communication since the last call.
int64_t TakeComputeWaitNanoseconds();

// Changes the size of the memory behind a tensor without touching the tensors and autograd records that point
// to it. 0 frees the memory; growing from 0 leaves the content undefined.
void ResizeStorage(const at::Tensor& tensor, int64_t bytes);

// A tensor beside the device's memory, one-dimensional, content undefined: in a HostBuffer on CUDA, else in
// memory that neither CapDeviceMemory nor CountDeviceMemory knows of.
at::Tensor NewHostTensor(int64_t elements, at::ScalarType type);

// What the device has in all; 0 for host memory, which ranks share with everything else.
int64_t DeviceMemoryBytes();

// Ends with c10::OutOfMemoryError whatever takes this rank's tensors over `bytes`; called before the first
// tensor. `allocator` is for host memory (memory/memory_cap.h); on CUDA it is LibTorch's.
Status CapDeviceMemory(int64_t bytes, MemoryAllocator allocator);

// Largest resident size of this process (host) or largest allocation on its device (CUDA) so far.
int64_t PeakBytes();

}  // namespace dynamiccl::zero
