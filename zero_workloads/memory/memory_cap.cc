// SPDX-License-Identifier: Apache-2.0
// Replaces LibTorch's allocator for host memory. The new allocator has a single mapping, and an arena places
// blocks in it.
#include "zero_workloads/memory/memory_cap.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include "zero_workloads/memory/caching_arena.h"
#include "zero_workloads/memory/first_fit_arena.h"

namespace dynamiccl::zero {
namespace {

double Mebibytes(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 20);
}

// A c10::Allocator over one mapping, in which a MemoryArena places the blocks. Any thread may allocate and
// free: a mutex guards the arena.
class ArenaAllocator final : public c10::Allocator {
 public:
  ArenaAllocator(void* memory, std::unique_ptr<MemoryArena> arena)
      : memory_(static_cast<char*>(memory)), arena_(std::move(arena)) {}

  c10::DataPtr allocate(size_t bytes) override {
    void* const block = bytes == 0 ? nullptr : Take(static_cast<int64_t>(bytes));
    return {block, block, raw_deleter(), c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  void Free(void* block) {
    const std::lock_guard lock(mutex_);
    if (block != nullptr) arena_->Free(static_cast<char*>(block) - memory_);
  }
  ArenaUse Use() {
    const std::lock_guard lock(mutex_);
    return arena_->Use();
  }

 private:
  // Returns the address of a new block. If the arena has no place, throws c10::OutOfMemoryError. The message
  // says that the memory is fragmented if the free bytes would have sufficed.
  void* Take(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::optional<int64_t> offset = arena_->Allocate(bytes);
    if (offset) return memory_ + *offset;
    const ArenaUse use = arena_->Use();
    const bool fragmented = use.free >= bytes;
    const auto share = 100.0 * static_cast<double>(use.free) / static_cast<double>(use.total);
    TORCH_CHECK_WITH(OutOfMemoryError, false,
                     fmt::format("out of memory: {:.2f} MiB asked for; --memory-cap {:.2f} MiB, free {:.2f} "
                                 "MiB ({:.0f} %), largest free block {:.2f} MiB{}",
                                 Mebibytes(bytes), Mebibytes(use.total), Mebibytes(use.free), share,
                                 Mebibytes(use.largest_free), fragmented ? ": fragmented" : ""));
  }

  char* memory_;
  std::mutex mutex_;
  std::unique_ptr<MemoryArena> arena_;
};

std::unique_ptr<MemoryArena> NewArena(int64_t bytes, MemoryAllocator allocator) {
  if (allocator == MemoryAllocator::kCaching) return std::make_unique<CachingArena>(bytes);
  return std::make_unique<FirstFitArena>(bytes);
}

// The installed allocator; null without a cap. It is never destroyed, because static tensors may be freed at
// any time before the process ends.
ArenaAllocator* the_allocator = nullptr;

c10::DeleterFnPtr ArenaAllocator::raw_deleter() const {
  return [](void* block) { the_allocator->Free(block); };
}

}  // namespace

Status CapHostTensors(int64_t bytes, MemoryAllocator allocator) {
  if (the_allocator != nullptr) return MakeError(ErrorKind::kInternal, "the memory is capped already");
  std::unique_ptr<MemoryArena> arena = NewArena(bytes, allocator);
  // The kernel provides pages on first use, and MAP_NORESERVE claims no swap space: the range costs nothing
  // until tensors touch it.
  void* const memory = mmap(nullptr, static_cast<size_t>(arena->AddressBytes()), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return MakeError(ErrorKind::kUnavailable, "--memory-cap {:.2f} MiB: cannot be mapped: {}",
                     Mebibytes(bytes), ErrnoText(errno));
  }
  the_allocator = new ArenaAllocator(memory, std::move(arena));
  c10::SetCPUAllocator(the_allocator);
  return {};
}

std::optional<ArenaUse> CappedUse() {
  if (the_allocator == nullptr) return std::nullopt;
  return the_allocator->Use();
}

}  // namespace dynamiccl::zero
