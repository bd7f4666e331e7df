// SPDX-License-Identifier: Apache-2.0
// Counts how many bytes of the device's memory are used for what. Every allocation of LibTorch is booked
// under a category when it is made, and subtracted when it is freed. The category is that of the innermost
// CountAs on the allocating thread. Recount moves a tensor's bytes to another category afterwards.
//
// The device interface (device.h) reports allocations: on the host through a layer over the allocator, on
// CUDA through the caching allocator's own reports. All functions may be called from any thread; one mutex
// guards one ledger for the process.
//
// The categories are those of the ZeRO paper's section 3: model states (parameters, gradients, optimizer
// states) and residual states (activations, temporary buffers).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace dynamiccl::zero {

// Every booked block belongs to exactly one category, which says what it is used for.
enum class MemoryCategory : uint8_t {
  // Parameters in the model's type that stay between steps.
  kParameters,
  // Gradients as autograd allocates them, and their sums.
  kGradients,
  // The optimizer's fp32 copy of the weights.
  kMaster,
  // The optimizer's first and second moments, fp32.
  kMoments,
  // Gradient buckets, and temporaries that a reduction needs besides them.
  kBuckets,
  // Memory that forward passes allocated and that autograd still holds.
  kActivations,
  // Inputs of blocks that are kept because the backward pass computes the blocks again.
  kCheckpoints,
  // In stage 3, parameters of other ranks' shards while they are in use.
  kGathered,
  // Transfer buffers between the optimizer and states that are stored elsewhere.
  kOffload,
  // Everything else: temporaries of backward passes and of the optimizer, the batch.
  kWorking,
};
// The number of enumerators above; arrays by category have this length.
inline constexpr size_t kMemoryCategories = 10;

// The category's name as JSON lines and tables print it, for example "master".
const char* Name(MemoryCategory category);

// Bytes in use, now and at most since the process started.
struct MemoryUse {
  int64_t current = 0;
  int64_t peak = 0;
};

// A consistent snapshot of all counters.
struct MemoryCounters {
  std::array<MemoryUse, kMemoryCategories> by_category;
  // The largest amount of activations at the end of a forward pass, before its backward pass.
  int64_t activations_kept = 0;
  // The peak of the sum over categories. Categories peak at different times, so the sum of their peaks is
  // larger.
  MemoryUse total;

  const MemoryUse& operator[](MemoryCategory category) const {
    return by_category[static_cast<size_t>(category)];
  }
};

// Copies the counters under the lock.
MemoryCounters ReadMemoryCounters();
// Updates `activations_kept`. The trainer calls it between a forward pass and its backward pass.
void NoteActivationsKept();
// Returns the largest total since the last call, in bytes. The next period starts with the present total.
// Only one caller may use it, because each call ends the period of all callers: StepBatch calls it around
// each step.
int64_t TakePeriodPeak();

// Books what this thread allocates during the object's life under `category`. Objects nest, and the innermost
// one counts. An object must be destroyed on the thread that made it, in reverse order.
//
//   const CountAs category(MemoryCategory::kBuckets);
//   buffer = at::empty({elements}, options);
class CountAs {
 public:
  explicit CountAs(MemoryCategory category);
  ~CountAs();
  CountAs(const CountAs&) = delete;
  CountAs& operator=(const CountAs&) = delete;

 private:
  MemoryCategory outer_;
};

// Moves the tensor's whole storage to the category. Undefined tensors and memory that was not booked
// (mapped or borrowed) are ignored.
void Recount(const at::Tensor& tensor, MemoryCategory category);

// Called by the allocator's hook for each new block; null is ignored. On the host, `bytes` are the requested
// bytes. On CUDA, they are the allocated bytes (multiples of 512).
void BookAllocation(const void* block, int64_t bytes);
// Called by the allocator's hook before a block is released. A block that is older than the hook is unknown,
// and its release changes nothing.
void BookFree(const void* block);

// Installs a layer over LibTorch's present allocator of host memory, which stays in use below it until the
// process ends. The layer books every block; on CUDA the caching allocator reports its blocks by itself
// (device_cuda.cc). Call it at most once, after CapHostTensors and before other threads use tensors: blocks
// that were allocated earlier are not counted, and their release changes no counter.
void CountHostAllocations();

}  // namespace dynamiccl::zero
