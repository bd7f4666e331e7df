// SPDX-License-Identifier: Apache-2.0
// The device seam on CUDA, over the CUDA runtime and LibTorch's caching allocator. Built with
// -DDYNAMICCL_CUDA=ON, which needs a LibTorch built for CUDA.
#include <ATen/native/cuda/Resize.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "zero_workloads/device.h"

namespace dynamiccl::zero {
namespace {

void Check(cudaError_t result, const char* function) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string(function) + ": " + cudaGetErrorString(result));
}

// Compute's stand-still is the time between two events in the compute stream, around the wait for
// communication.
struct ComputeWait {
  Event begin;
  Event end;
};
std::vector<ComputeWait> compute_waits;

Event RecordIn(cudaStream_t stream);

}  // namespace

struct EventState {
  cudaEvent_t event = nullptr;
};

void EventDeleter::operator()(EventState* state) const {
  cudaEventDestroy(state->event);
  delete state;
}

namespace {

Event RecordIn(cudaStream_t stream) {
  Event event(new EventState);
  Check(cudaEventCreate(&event->event), "cudaEventCreate");
  Check(cudaEventRecord(event->event, stream), "cudaEventRecord");
  return event;
}

}  // namespace

Result<at::Device> SelectDevice(int local_rank) {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result != cudaSuccess || devices == 0) {
    return WithHint(MakeError(ErrorKind::kUnavailable, "no CUDA device: {}", cudaGetErrorString(result)),
                    "build with -DDYNAMICCL_CUDA=OFF for a machine without a GPU");
  }
  // More ranks than devices share them, as NCCL_MULTI_RANK_GPU_ENABLE allows.
  const int device = local_rank % devices;
  if (cudaSetDevice(device) != cudaSuccess) {
    return MakeError(ErrorKind::kUnavailable, "cudaSetDevice({}) failed for local rank {}", device,
                     local_rank);
  }
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device));
}

Stream::Stream() {
  Check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

Stream::~Stream() {
  cudaStreamDestroy(handle_);
}

void Stream::StartAfterCompute() {
  const Event compute = RecordIn(c10::cuda::getCurrentCUDAStream());
  Check(cudaStreamWaitEvent(handle_, compute->event, 0), "cudaStreamWaitEvent");
}

Event Stream::Record() {
  return RecordIn(handle_);
}

void StartComputeAfter(const Event& event) {
  if (event == nullptr) return;
  const cudaStream_t compute = c10::cuda::getCurrentCUDAStream();
  Event begin = RecordIn(compute);
  Check(cudaStreamWaitEvent(compute, event->event, 0), "cudaStreamWaitEvent");
  compute_waits.push_back({std::move(begin), RecordIn(compute)});
}

void WaitOnHost(const Event& event, const std::function<void()>& check) {
  StartComputeAfter(event);
  while (cudaEventQuery(event->event) == cudaErrorNotReady) {
    check();
    // Short against the few milliseconds of a step, long against the microsecond of a query.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  check();
}

int64_t TakeComputeWaitNanoseconds() {
  double milliseconds = 0.0;
  for (const ComputeWait& wait : compute_waits) {
    float elapsed = 0.0f;
    Check(cudaEventSynchronize(wait.end->event), "cudaEventSynchronize");
    Check(cudaEventElapsedTime(&elapsed, wait.begin->event, wait.end->event), "cudaEventElapsedTime");
    milliseconds += elapsed;
  }
  compute_waits.clear();
  return static_cast<int64_t>(milliseconds * 1e6);
}

void ResizeStorage(const at::Tensor& tensor, int64_t bytes) {
  at::native::resize_bytes_cuda(tensor.storage().unsafeGetStorageImpl(), static_cast<size_t>(bytes));
}

int64_t PeakBytes() {
  const auto statistics = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
  return statistics.allocated_bytes[0].peak;  // entry 0 is the sum over all pools
}

}  // namespace dynamiccl::zero
