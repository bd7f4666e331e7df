// SPDX-License-Identifier: Apache-2.0
// A c10::Allocator that wraps another one. It returns the other allocator's blocks, so the addresses are the
// same.
#include "zero_workloads/memory/memory_counters.h"

#include <c10/core/CPUAllocator.h>

namespace dynamiccl::zero {
namespace {

// Passes every request on to another allocator and counts it. c10::Allocator must be thread-safe: the ledger
// has a mutex, and the wrapped allocator is thread-safe.
class CountingAllocator final : public c10::Allocator {
 public:
  // `below` must return blocks that its raw deleter can free, as LibTorch's own allocators do: the deleter
  // gets no context except the block.
  explicit CountingAllocator(c10::Allocator* below) : below_(below) {}

  c10::DataPtr allocate(size_t bytes) override {
    void* const block = below_->raw_allocate(bytes);
    BookAllocation(block, static_cast<int64_t>(bytes));
    return {block, block, raw_deleter(), c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override {
    below_->copy_data(to, from, bytes);
  }

  void Free(void* block) {
    BookFree(block);
    below_->raw_deallocate(block);
  }

 private:
  c10::Allocator* below_;
};

// The installed CountingAllocator. It is never destroyed, because static tensors may be freed at any time
// before the process ends.
CountingAllocator* the_allocator = nullptr;

c10::DeleterFnPtr CountingAllocator::raw_deleter() const {
  return [](void* block) { the_allocator->Free(block); };
}

}  // namespace

void CountHostAllocations() {
  the_allocator = new CountingAllocator(c10::GetCPUAllocator());
  c10::SetCPUAllocator(the_allocator);
}

}  // namespace dynamiccl::zero
