// SPDX-License-Identifier: Apache-2.0
// A cap on the host memory of this rank's tensors, so that a run can fail as on a small device: for want of
// memory, or for want of a contiguous piece of it. What LibTorch's kernels take beside tensors is not
// counted.
#pragma once

#include <cstdint>
#include <optional>

#include "src/base/status.h"
#include "zero_workloads/memory/memory_arena.h"

namespace dynamiccl::zero {

enum class MemoryAllocator : uint8_t {
  kFirstFit,  // one piece, lowest place that fits (first_fit_arena.h)
  kCaching,   // as LibTorch's on CUDA (caching_arena.h)
};

// Tensors allocated from here on live in the arena; older ones stay where they are. An allocation that does
// not fit throws c10::OutOfMemoryError with total, free and largest free block. Called at most once, by the
// first thread, before a layer over LibTorch's allocator is put in.
Status CapHostTensors(int64_t bytes, MemoryAllocator allocator);
// Of the arena; nothing without a cap. Any thread.
std::optional<ArenaUse> CappedUse();

}  // namespace dynamiccl::zero
