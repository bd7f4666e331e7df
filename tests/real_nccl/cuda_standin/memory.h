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
  // A block of a file starts at this place of it (driver_memory.cc); file is -1 for other blocks.
  int file = -1;
  size_t file_offset = 0;
  bool mapped = true;  // false for a block of a file whose pages are not mapped yet

  bool shared() const { return file >= 0; }
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
// Maps the blocks in the range that are not mapped yet, so that the host can read and write them. Returns
// false when the machine refuses.
bool MakeUsable(const void* address, size_t bytes);
// Does what memset does. A large fill with zero releases whole pages instead of writing them. Returns false
// when the memory cannot be mapped.
bool FillMemory(void* address, int value, size_t bytes);

// Does what mmap does with pages of `file`, or with anonymous pages where `file` is -1, without a promise of
// memory. Returns null on failure, and says why on stderr.
void* MapPages(uintptr_t place, size_t bytes, int protection, int file = -1, size_t offset = 0);

}  // namespace cuda_standin
