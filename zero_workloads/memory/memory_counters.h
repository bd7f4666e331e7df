// SPDX-License-Identifier: Apache-2.0
// Who holds how many bytes of the device's memory: every allocation of LibTorch's is booked under a category
// when it is made, and taken off when it is freed. The category is that of the innermost CountAs of the
// thread; Recount moves a tensor's bytes afterwards. The device seam (device.h) reports the allocations. Any
// thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace dynamiccl::zero {

enum class MemoryCategory : uint8_t {
  kParameters,   // of the model's type, that stay between steps
  kGradients,    // where autograd leaves them, and their sums
  kMaster,       // fp32 weights of the optimizer
  kMoments,      // first and second
  kBuckets,      // of gradients, and what a reduction needs beside them
  kActivations,  // what forward passes allocated and autograd still holds
  kCheckpoints,  // inputs of blocks that are computed again
  kGathered,     // parameters of other ranks' shards, in use
  kOffload,      // ring of buffers between the optimizer and where its states are
  kWorking,      // everything else: temporaries of backward passes and of the optimizer, the batch
};
inline constexpr size_t kMemoryCategories = 10;

// As in JSON lines and tables.
const char* Name(MemoryCategory category);

// Bytes.
struct MemoryUse {
  int64_t current = 0;
  int64_t peak = 0;
};

struct MemoryCounters {
  std::array<MemoryUse, kMemoryCategories> by_category;
  int64_t activations_kept = 0;  // the most that lay between a forward pass and its backward pass
  MemoryUse total;               // its peak is that of the sum, not the sum of peaks

  const MemoryUse& operator[](MemoryCategory category) const {
    return by_category[static_cast<size_t>(category)];
  }
};

MemoryCounters ReadMemoryCounters();
// Called between a forward pass and its backward pass.
void NoteActivationsKept();
// The largest total since the last call; the next period begins with what is there now.
int64_t TakePeriodPeak();

// What this thread allocates in the object's life belongs to the category.
class CountAs {
 public:
  explicit CountAs(MemoryCategory category);
  ~CountAs();
  CountAs(const CountAs&) = delete;
  CountAs& operator=(const CountAs&) = delete;

 private:
  MemoryCategory outer_;
};

// The tensor's memory belongs to the category from now on. Memory that was not booked (mapped, borrowed)
// stays so.
void Recount(const at::Tensor& tensor, MemoryCategory category);

// From the allocator's hook. Bytes as asked for on the host, as given on CUDA (multiples of 512). Blocks that
// were made before the hook was there are not known, and freeing them changes nothing.
void BookAllocation(const void* block, int64_t bytes);
void BookFree(const void* block);

}  // namespace dynamiccl::zero
