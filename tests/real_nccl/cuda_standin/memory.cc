// SPDX-License-Identifier: Apache-2.0
// Keeps a table of memory blocks, sorted by address.
#include "tests/real_nccl/cuda_standin/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>

#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kLargeFillBytes = 4 * kPageBytes;  // for smaller fills madvise costs more than it saves

size_t RoundedUp(size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

struct BlockTable {
  std::mutex mutex;
  std::map<uintptr_t, MemoryBlock> blocks;
};

// The table is never destroyed, because NCCL's threads may free memory while the process exits.
BlockTable& Table() {
  static auto* table = new BlockTable;
  return *table;
}

}  // namespace

void RememberBlock(const MemoryBlock& block) {
  const std::lock_guard<std::mutex> lock(Table().mutex);
  Table().blocks[block.address] = block;
}

std::optional<MemoryBlock> ForgetBlock(uintptr_t address) {
  const std::lock_guard<std::mutex> lock(Table().mutex);
  const auto row = Table().blocks.find(address);
  if (row == Table().blocks.end()) return std::nullopt;
  const MemoryBlock block = row->second;
  Table().blocks.erase(row);
  return block;
}

std::optional<MemoryBlock> FindBlock(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard<std::mutex> lock(Table().mutex);
  auto row = Table().blocks.upper_bound(wanted);
  if (row == Table().blocks.begin()) return std::nullopt;
  --row;
  if (wanted - row->first >= row->second.bytes) return std::nullopt;
  return row->second;
}

void* AllocateMemory(size_t bytes, MemoryKind kind) {
  const size_t rounded = RoundedUp(bytes == 0 ? 1 : bytes);
  void* pages =
      mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  RememberBlock({.address = reinterpret_cast<uintptr_t>(pages),
                 .bytes = rounded,
                 .kind = kind,
                 .device = ThisPlace().device,
                 .node = ThisPlace().node});
  return pages;
}

void FreeMemory(void* address) {
  const auto block = ForgetBlock(reinterpret_cast<uintptr_t>(address));
  if (block) munmap(address, block->bytes);
}

void FillMemory(void* address, int value, size_t bytes) {
  const auto block = FindBlock(address);
  if (value != 0 || bytes < kLargeFillBytes || !block) {
    std::memset(address, value, bytes);
    return;
  }
  auto* begin = static_cast<char*>(address);
  char* end = begin + bytes;
  auto* first_page = reinterpret_cast<char*>(RoundedUp(reinterpret_cast<uintptr_t>(begin)));
  auto* last_page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(end) / kPageBytes * kPageBytes);
  const int advice = block->shared ? MADV_REMOVE : MADV_DONTNEED;
  if (madvise(first_page, static_cast<size_t>(last_page - first_page), advice) != 0) {
    std::memset(begin, 0, bytes);
    return;
  }
  std::memset(begin, 0, static_cast<size_t>(first_page - begin));
  std::memset(last_page, 0, static_cast<size_t>(end - last_page));
}

}  // namespace cuda_standin
