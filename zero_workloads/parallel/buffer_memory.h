// SPDX-License-Identifier: Apache-2.0
// Memory for buffers that collectives use again and again: LibTorch's own, or memory of ncclMemAlloc that the
// NCCL library knows beforehand. Libraries can send such memory without copying it first.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "zero_workloads/parallel/process_group.h"

namespace dynamiccl::zero {

enum class BufferMemory {
  // LibTorch's allocator.
  kOrdinary,
  // ncclMemAlloc and ncclCommRegister, since NCCL 2.19. Each rank registers for itself.
  kRegistered,
  // ncclMemAlloc and ncclCommWindowRegister with NCCL_WIN_COLL_SYMMETRIC, since NCCL 2.27. All ranks register
  // together.
  kWindow,
};

// Returns the memory for a user's word: "ordinary", "registered" or "window". Other words throw
// std::logic_error.
BufferMemory BufferMemoryOf(const std::string& word);

// Returns a tensor of `elements` undefined elements for collectives of `group`. All ranks of the group make
// the same calls in the same order. The bytes are counted in the present category (memory_counters.h), but
// not limited by CapDeviceMemory. The tensor's memory must be freed before the group is destroyed. Throws
// std::runtime_error if the NCCL library lacks the functions, or refuses.
at::Tensor NewBuffer(int64_t elements, const at::TensorOptions& options, BufferMemory memory,
                     ProcessGroup* group);

}  // namespace dynamiccl::zero
