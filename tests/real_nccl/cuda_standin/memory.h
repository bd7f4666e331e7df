// SPDX-License-Identifier: Apache-2.0
// Device memory that is host memory: who allocated what, so that pointers can be asked about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace cuda_standin {

// Values of cudaMemoryType.
enum class MemoryKind { kHost = 1, kDevice = 2, kManaged = 3 };

struct MemoryBlock {
  uintptr_t address = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  int node = 0;
  bool shared = false;  // a mapping of a file, see driver_memory.cc
};

// Thread-safe. Blocks never overlap.
void RememberBlock(const MemoryBlock& block);
std::optional<MemoryBlock> ForgetBlock(uintptr_t address);
// The block that `address` lies in, its start or not.
std::optional<MemoryBlock> FindBlock(const void* address);

// Zeroed pages that cost nothing until they are touched; null when address space is out.
void* AllocateMemory(size_t bytes, MemoryKind kind);
// Ignores null and addresses that AllocateMemory did not return.
void FreeMemory(void* address);
// memset; a large fill with zero gives whole pages back instead of touching them.
void FillMemory(void* address, int value, size_t bytes);

}  // namespace cuda_standin
