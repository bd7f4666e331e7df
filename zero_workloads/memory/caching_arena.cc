// SPDX-License-Identifier: Apache-2.0
// Best fit with splitting and coalescing, as in LibTorch's CUDACachingAllocator (c10/cuda, version 2.13).
// Constants and functions that mean the same have the same names as there, to make the comparison easy.
#include "zero_workloads/memory/caching_arena.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace dynamiccl::zero {
namespace {

// The constants are bytes and have the values of c10/cuda/CUDACachingAllocator. Every size is rounded up to a
// multiple of this one.
constexpr int64_t kMinBlockSize = 512;
// Requests up to this size come from the small pool, larger ones from the large pool.
constexpr int64_t kSmallSize = int64_t{1} << 20;
// Size of every segment of the small pool.
constexpr int64_t kSmallBuffer = int64_t{2} << 20;
// Requests from this size on get a segment of their own.
constexpr int64_t kMinLargeAlloc = int64_t{10} << 20;
// Size of a segment of the large pool for a request below kMinLargeAlloc.
constexpr int64_t kLargeBuffer = int64_t{20} << 20;
// The size of a segment for a single request is rounded up to a multiple of this size.
constexpr int64_t kRoundLarge = int64_t{2} << 20;

// Number of addresses for each byte of memory. A real device runs out of memory long before it runs out of
// virtual addresses. With this many addresses, holes between segments never prevent a segment that fits into
// the memory.
constexpr int64_t kAddressesPerByte = 16;

// Rounds `bytes` up to a multiple of `multiple`, which need not be a power of two.
int64_t RoundUp(int64_t bytes, int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Returns the size of the segment that the allocator requests when no cached block fits a request of `bytes`
// (get_allocation_size in LibTorch).
int64_t SegmentBytes(int64_t bytes) {
  if (bytes <= kSmallSize) return kSmallBuffer;
  return bytes < kMinLargeAlloc ? kLargeBuffer : RoundUp(bytes, kRoundLarge);
}

}  // namespace

CachingArena::CachingArena(int64_t bytes) : total_(bytes), addresses_(bytes * kAddressesPerByte) {}

std::optional<int64_t> CachingArena::Allocate(int64_t bytes) {
  const int64_t wanted = RoundUp(bytes, kMinBlockSize);
  const bool small = wanted <= kSmallSize;
  auto& pool = free_[small ? 0 : 1];
  auto fit = pool.lower_bound({wanted, 0});
  if (fit == pool.end()) {
    if (!AddSegment(SegmentBytes(wanted), small)) return std::nullopt;
    fit = pool.lower_bound({wanted, 0});
  }
  const auto block = blocks_.find(fit->second);
  pool.erase(fit);
  block->second.taken = true;
  // LibTorch's should_split: a small block is split for any remainder, a large one only if more than 1 MiB
  // remains.
  const int64_t rest = block->second.bytes - wanted;
  if (small ? rest >= kMinBlockSize : rest > kSmallSize) Split(block, wanted);
  taken_ += block->second.bytes;
  peak_taken_ = std::max(peak_taken_, taken_);
  ++allocations_;
  return block->first;
}

bool CachingArena::AddSegment(int64_t bytes, bool small) {
  if (reserved_ + bytes > total_) ReleaseFreeSegments();
  const auto offset = reserved_ + bytes > total_ ? std::nullopt : addresses_.Allocate(bytes);
  if (!offset) return false;
  reserved_ += bytes;
  segments_.emplace(*offset, bytes);
  const Block block{bytes, *offset, small, false};
  blocks_.emplace(*offset, block);
  Pool(block).emplace(bytes, *offset);
  return true;
}

void CachingArena::ReleaseFreeSegments() {
  for (auto segment = segments_.begin(); segment != segments_.end();) {
    const auto block = blocks_.find(segment->first);
    if (block->second.taken || block->second.bytes != segment->second) {
      ++segment;
      continue;
    }
    Pool(block->second).erase({block->second.bytes, block->first});
    addresses_.Free(segment->first);
    reserved_ -= segment->second;
    blocks_.erase(block);
    segment = segments_.erase(segment);
  }
}

void CachingArena::Split(Blocks::iterator block, int64_t bytes) {
  Block rest = block->second;
  rest.bytes -= bytes;
  rest.taken = false;
  block->second.bytes = bytes;
  blocks_.emplace(block->first + bytes, rest);
  Pool(rest).emplace(rest.bytes, block->first + bytes);
}

void CachingArena::JoinWithNext(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next == blocks_.end() || next->second.taken || next->second.segment != block->second.segment) return;
  Pool(next->second).erase({next->second.bytes, next->first});
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
}

void CachingArena::Free(int64_t offset) {
  auto block = blocks_.find(offset);
  if (block == blocks_.end() || !block->second.taken)
    throw std::logic_error("no block of the arena starts at " + std::to_string(offset));
  taken_ -= block->second.bytes;
  block->second.taken = false;
  JoinWithNext(block);
  if (block != blocks_.begin()) {
    const auto before = std::prev(block);
    if (!before->second.taken && before->second.segment == block->second.segment) {
      Pool(before->second).erase({before->second.bytes, before->first});
      before->second.bytes += block->second.bytes;
      blocks_.erase(block);
      block = before;
    }
  }
  Pool(block->second).emplace(block->second.bytes, block->first);
}

ArenaUse CachingArena::Use() const {
  // The memory outside of segments could become one new segment. Completely free segments would be released
  // first to enlarge it.
  int64_t whole = total_ - reserved_, longest = 0;
  for (const auto& [offset, bytes] : segments_) {
    const Block& block = blocks_.at(offset);
    if (!block.taken && block.bytes == bytes) whole += bytes;
  }
  for (const auto& pool : free_) {
    if (!pool.empty()) longest = std::max(longest, pool.rbegin()->first);
  }
  return {total_, total_ - taken_, std::max(longest, whole), peak_taken_, allocations_};
}

}  // namespace dynamiccl::zero
