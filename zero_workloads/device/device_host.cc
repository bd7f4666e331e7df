// SPDX-License-Identifier: Apache-2.0
// Implements device.h on host memory, with hostccl's streams and events. Compute is synchronous here, so
// ordering compute after communication means to wait for it.
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "src/base/clock.h"
#include "src/nccl_abi/host_stream.h"
#include "zero_workloads/device/device.h"
#include "zero_workloads/device/host_memory.h"
#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

// Time that the computing thread has waited. Hooks of the backward pass run on the same thread (LibTorch's
// CPU engine).
thread_local int64_t compute_wait_nanoseconds = 0;

// Bytes. LibTorch aligns host memory in the same way.
constexpr int64_t kHostAlignment = 64;

// Rounds up to whole cache lines, and to at least one, since aligned_alloc takes only multiples of the
// alignment.
int64_t RoundUpToLine(int64_t bytes) {
  return std::max(kHostAlignment, (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment);
}

void Check(ncclResult_t result, const char* function) {
  if (result != ncclSuccess)
    throw std::runtime_error(std::string(function) + ": " + ncclGetErrorString(result));
}

// The blocks of NewHostTensor: the second kind of memory of a run on CPUs. Any thread may call it.
class HostBlocks {
 public:
  void Add(const void* block, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_of_[block] = bytes;
    use_.current += bytes;
    use_.peak = std::max(use_.peak, use_.current);
  }
  void Remove(const void* block) {
    const std::lock_guard lock(mutex_);
    use_.current -= bytes_of_.at(block);
    bytes_of_.erase(block);
  }
  bool Has(const void* block) {
    const std::lock_guard lock(mutex_);
    return bytes_of_.contains(block);
  }
  MemoryUse Use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, int64_t> bytes_of_;
  MemoryUse use_;
};

// The object is never destroyed, because static tensors may be freed at any time before the process ends.
HostBlocks& TheHostBlocks() {
  static HostBlocks* const blocks = new HostBlocks;
  return *blocks;
}

void FreeHostBlock(void* block) {
  TheHostBlocks().Remove(block);
  std::free(block);
}

// Makes glibc keep freed memory. Units and activations are allocated and freed in every step. If glibc
// returned this memory to the kernel in between, each 4 KiB would cost a page fault when it is used again:
// together a sixth of a step of stage 3 at 60 million parameters. Blocks above 32 MiB, glibc's limit, are
// still returned. A user's own settings for glibc's memory have precedence.
void KeepFreedMemory() {
#ifdef __GLIBC__
  for (const char* own : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"}) {
    if (std::getenv(own) != nullptr) return;
  }
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace

// An event of hostccl.
struct EventState {
  hostcclEvent_t event = nullptr;
};

void EventDeleter::operator()(EventState* state) const {
  hostcclEventDestroy(state->event);
  delete state;
}

Result<at::Device> SelectDevice(int) {
  KeepFreedMemory();
  return at::Device(at::kCPU);
}

void CountDeviceMemory() {
  CountHostAllocations();
}

Stream::Stream() {
  Check(hostcclStreamCreate(&handle_), "hostcclStreamCreate");
}

Stream::~Stream() {
  hostcclStreamDestroy(handle_);
}

void Stream::StartAfterCompute() {}

void Stream::StartAfter(const Event& event) {
  if (event != nullptr) Check(hostcclStreamWaitEvent(handle_, event->event), "hostcclStreamWaitEvent");
}

Event Stream::Record() {
  Event event(new EventState);
  Check(hostcclEventCreate(&event->event), "hostcclEventCreate");
  Check(hostcclEventRecord(event->event, handle_), "hostcclEventRecord");
  return event;
}

void StartComputeAfter(const Event& event) {
  if (event == nullptr) return;
  const int64_t begin = MonotonicNanoseconds();
  Check(hostcclEventSynchronize(event->event), "hostcclEventSynchronize");
  compute_wait_nanoseconds += MonotonicNanoseconds() - begin;
}

void FinishCompute() {}

at::Tensor HostBuffer(int64_t bytes) {
  return at::empty({bytes}, at::kByte);
}

void WaitOnHost(const Event& event, const std::function<void()>& check) {
  StartComputeAfter(event);
  check();
}

int64_t TakeComputeWaitNanoseconds() {
  return std::exchange(compute_wait_nanoseconds, 0);
}

void ResizeStorage(const at::Tensor& tensor, int64_t bytes) {
  at::native::resize_bytes_cpu(tensor.storage().unsafeGetStorageImpl(), static_cast<size_t>(bytes));
}

at::Tensor NewHostTensor(int64_t elements, at::ScalarType type) {
  const int64_t bytes = RoundUpToLine(elements * static_cast<int64_t>(c10::elementSize(type)));
  void* const memory = std::aligned_alloc(kHostAlignment, static_cast<size_t>(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  TheHostBlocks().Add(memory, bytes);
  return at::from_blob(memory, {elements}, FreeHostBlock, at::TensorOptions(type));
}

bool LiesOnHost(const at::Tensor& tensor) {
  return TheHostBlocks().Has(tensor.storage().data());
}

MemoryUse HostMemoryUse() {
  return TheHostBlocks().Use();
}

int64_t DeviceMemoryBytes() {
  return 0;
}

Status CapDeviceMemory(int64_t bytes, MemoryAllocator allocator) {
  return CapHostTensors(bytes, allocator);
}

int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;  // Linux counts KiB
}

}  // namespace dynamiccl::zero
