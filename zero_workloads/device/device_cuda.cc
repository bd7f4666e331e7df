// SPDX-License-Identifier: Apache-2.0
// Implements device.h on CUDA, with the CUDA runtime and LibTorch's caching allocator. Built with
// -DDYNAMICCL_CUDA=ON, which needs a LibTorch built for CUDA.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "zero_workloads/device/device.h"
#include "zero_workloads/device/host_memory.h"
#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

void Check(cudaError_t result, const char* function) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string(function) + ": " + cudaGetErrorString(result));
}

// One wait of compute for communication. The waiting time lies between these two events of the compute
// stream.
struct ComputeWait {
  Event begin;
  Event end;
};
// The waits since the last TakeComputeWaitNanoseconds.
std::vector<ComputeWait> compute_waits;

Event RecordIn(cudaStream_t stream);

// LibTorch's caching allocator reports to this object. LibTorch passes it on to the threads of a backward
// pass.
class DeviceMemoryReports final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* block, int64_t bytes, size_t, size_t, c10::Device device) override {
    if (!device.is_cuda()) return;
    if (bytes > 0) {
      BookAllocation(block, bytes);
    } else {
      BookFree(block);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }
};

}  // namespace

// A CUDA event.
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
  // If there are more ranks than devices, ranks share devices, as NCCL_MULTI_RANK_GPU_ENABLE allows.
  const int device = local_rank % devices;
  if (cudaSetDevice(device) != cudaSuccess) {
    return MakeError(ErrorKind::kUnavailable, "cudaSetDevice({}) failed for local rank {}", device,
                     local_rank);
  }
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device));
}

void CountDeviceMemory() {
  // The guard is leaked on purpose, because it must count until the process ends.
  new c10::DebugInfoGuard(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<DeviceMemoryReports>());
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

void Stream::StartAfter(const Event& event) {
  if (event != nullptr) Check(cudaStreamWaitEvent(handle_, event->event, 0), "cudaStreamWaitEvent");
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

void FinishCompute() {
  Check(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream()), "cudaStreamSynchronize");
}

at::Tensor HostBuffer(int64_t bytes) {
  return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
}

void WaitOnHost(const Event& event, const std::function<void()>& check) {
  StartComputeAfter(event);
  while (cudaEventQuery(event->event) == cudaErrorNotReady) {
    check();
    // The pause of 20 us is short compared with the few milliseconds of a step, and long compared with the
    // microsecond that a query takes.
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
  // ATen's own resize is not used: it needs the headers of cuBLAS, and it would copy content that is not
  // needed.
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  if (static_cast<int64_t>(storage->nbytes()) == bytes) return;
  storage->set_data_ptr_noswap(storage->allocator()->allocate(static_cast<size_t>(bytes)));
  storage->set_nbytes(static_cast<size_t>(bytes));
}

at::Tensor NewHostTensor(int64_t elements, at::ScalarType type) {
  return HostBuffer(elements * static_cast<int64_t>(c10::elementSize(type))).view(type);
}

bool LiesOnHost(const at::Tensor& tensor) {
  return tensor.is_cpu();
}

MemoryUse HostMemoryUse() {
  const auto active = at::getHostAllocator(at::kCUDA)->get_stats().active_bytes;
  return {active.current, active.peak};
}

int64_t DeviceMemoryBytes() {
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<int64_t>(total);
}

Status CapDeviceMemory(int64_t bytes, MemoryAllocator) {
  const int64_t total = DeviceMemoryBytes();
  const double share = static_cast<double>(bytes) / static_cast<double>(total);
  if (share > 1) {
    return MakeError(ErrorKind::kInvalidArgument, "--memory-cap {}: the device has {} bytes", bytes, total);
  }
  c10::cuda::CUDACachingAllocator::setMemoryFraction(share, c10::cuda::current_device());
  return {};
}

int64_t PeakBytes() {
  const auto statistics = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
  return statistics.allocated_bytes[0].peak;  // entry 0 is the sum over all pools
}

}  // namespace dynamiccl::zero
