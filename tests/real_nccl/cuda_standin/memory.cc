// SPDX-License-Identifier: Apache-2.0
// Keeps a table of memory blocks, sorted by address.
#include "tests/real_nccl/cuda_standin/memory.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
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

// Writes zeros into a file, as holes where pages are whole. The system call is made directly, because the
// stand-in replaces fallocate() (socket_wait.cc).
bool ZeroFile(int file, size_t offset, size_t bytes) {
  constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  return syscall(SYS_fallocate, file, kHole, offset, bytes) == 0;
}

// Releases the whole pages of a private range and clears the rest.
void ZeroPages(char* begin, size_t bytes) {
  char* end = begin + bytes;
  auto* first_page = reinterpret_cast<char*>(RoundedUp(reinterpret_cast<uintptr_t>(begin)));
  auto* last_page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(end) / kPageBytes * kPageBytes);
  if (madvise(first_page, static_cast<size_t>(last_page - first_page), MADV_DONTNEED) != 0) {
    std::memset(begin, 0, bytes);
    return;
  }
  std::memset(begin, 0, static_cast<size_t>(first_page - begin));
  std::memset(last_page, 0, static_cast<size_t>(end - last_page));
}

bool Contains(const MemoryBlock& block, uintptr_t address, size_t bytes) {
  return address >= block.address && address - block.address + bytes <= block.bytes;
}

}  // namespace

void* MapPages(uintptr_t place, size_t bytes, int protection, int file, size_t offset) {
  const int flags =
      MAP_NORESERVE | (place != 0 ? MAP_FIXED : 0) | (file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
  void* pages =
      mmap(reinterpret_cast<void*>(place), bytes, protection, flags, file, static_cast<off_t>(offset));
  if (pages != MAP_FAILED) return pages;
  std::fprintf(stderr, "cuda_standin: cannot map %zu bytes: %s\n", bytes, strerror(errno));
  return nullptr;
}

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
  void* pages = MapPages(0, rounded, PROT_READ | PROT_WRITE);
  if (pages == nullptr) return nullptr;
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

bool MakeUsable(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard<std::mutex> lock(Table().mutex);
  auto row = Table().blocks.upper_bound(begin);
  if (row != Table().blocks.begin()) --row;
  for (; row != Table().blocks.end() && row->first < begin + bytes; ++row) {
    MemoryBlock& block = row->second;
    if (block.mapped || block.address + block.bytes <= begin) continue;
    if (MapPages(block.address, block.bytes, PROT_READ | PROT_WRITE, block.file, block.file_offset) ==
        nullptr)
      return false;
    block.mapped = true;
  }
  return true;
}

bool FillMemory(void* address, int value, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const auto block = FindBlock(address);
  if (value == 0 && block && Contains(*block, begin, bytes)) {
    // A fill of a block that is not mapped is a hole whatever its size, so that the block stays unmapped.
    const bool makes_hole = block->shared() && (bytes >= kLargeFillBytes || !block->mapped);
    if (makes_hole && ZeroFile(block->file, block->file_offset + (begin - block->address), bytes))
      return true;
    if (!block->shared() && bytes >= kLargeFillBytes) {
      ZeroPages(static_cast<char*>(address), bytes);
      return true;
    }
  }
  if (!MakeUsable(address, bytes)) return false;
  std::memset(address, value, bytes);
  return true;
}

}  // namespace cuda_standin
