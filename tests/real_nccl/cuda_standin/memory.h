// SPDX-License-Identifier: Apache-2.0
// Emulates device memory with host memory. A table keeps every block, so that the stand-in can answer
// questions about pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace cuda_standin {

// The numbers are those of cudaMemoryType.
enum class MemoryKind { kHost = 1, kDevice = 2, kManaged = 3 };

struct MemoryBlock {
  uintptr_t address = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  int node = 0;
  bool shared = false;  // true for a mapping of a file (driver_memory.cc)
};

// The functions of the table are thread-safe. Blocks never overlap.
void RememberBlock(const MemoryBlock& block);
std::optional<MemoryBlock> ForgetBlock(uintptr_t address);
// Returns the block that contains `address`.
std::optional<MemoryBlock> FindBlock(const void* address);

// Returns zeroed pages that use no memory until they are touched. Returns null when no address space is left.
void* AllocateMemory(size_t bytes, MemoryKind kind);
// Frees the block that starts at `address`. Ignores null and addresses where no block starts.
void FreeMemory(void* address);
// Does what memset does. A large fill with zero releases whole pages instead of writing them.
void FillMemory(void* address, int value, size_t bytes);

}  // namespace cuda_standin
