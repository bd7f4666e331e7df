// SPDX-License-Identifier: Apache-2.0
// Caps the host memory of this rank's tensors, so that a CPU run can fail as on a small device: because
// memory is exhausted, or because no contiguous piece is long enough. Memory that LibTorch's kernels use
// besides tensors is not counted.
#pragma once

#include <cstdint>
#include <optional>

#include "src/base/status.h"
#include "zero_workloads/memory/memory_arena.h"

namespace dynamiccl::zero {

// Selects how the capped memory is divided into blocks (--memory-allocator).
enum class MemoryAllocator : uint8_t {
  // The memory is one piece. A block goes to the lowest place that fits (first_fit_arena.h).
  kFirstFit,
  // The memory is divided as LibTorch's CUDA allocator does it (caching_arena.h).
  kCaching,
};

// Places all tensors allocated after this call in an arena of `bytes`; older tensors stay where they are. An
// allocation that does not fit throws c10::OutOfMemoryError, whose message gives the total, the free memory
// and the largest free block. Call it at most once, on the main thread, before CountHostAllocations. An error
// means that the address range could not be mapped; nothing has changed then.
Status CapHostTensors(int64_t bytes, MemoryAllocator allocator);
// The present use of the arena; empty without a cap. Any thread may call it.
std::optional<ArenaUse> CappedUse();

}  // namespace dynamiccl::zero
