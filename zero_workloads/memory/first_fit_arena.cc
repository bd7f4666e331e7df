// SPDX-License-Identifier: Apache-2.0
// First fit over a sorted map of holes. Rounding to kArenaAlignment keeps every offset aligned.
#include "zero_workloads/memory/first_fit_arena.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace dynamiccl::zero {

FirstFitArena::FirstFitArena(int64_t bytes) : total_(bytes / kArenaAlignment * kArenaAlignment) {
  if (total_ > 0) holes_.emplace(0, total_);
}

std::optional<int64_t> FirstFitArena::Allocate(int64_t bytes) {
  const int64_t wanted = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  const auto hole =
      std::find_if(holes_.begin(), holes_.end(), [wanted](const auto& one) { return one.second >= wanted; });
  if (hole == holes_.end()) return std::nullopt;
  const auto [offset, length] = *hole;
  holes_.erase(hole);
  if (length > wanted) holes_.emplace(offset + wanted, length - wanted);
  blocks_.emplace(offset, wanted);
  taken_ += wanted;
  peak_taken_ = std::max(peak_taken_, taken_);
  ++allocations_;
  return offset;
}

void FirstFitArena::Free(int64_t offset) {
  const auto block = blocks_.find(offset);
  if (block == blocks_.end())
    throw std::logic_error("no block of the arena starts at " + std::to_string(offset));
  // The new hole absorbs the hole after it and the hole before it, where they touch.
  int64_t begin = offset, end = offset + block->second;
  taken_ -= block->second;
  blocks_.erase(block);
  auto next = holes_.lower_bound(begin);
  if (next != holes_.end() && next->first == end) {
    end += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
    begin = std::prev(next)->first;
    holes_.erase(std::prev(next));
  }
  holes_.emplace(begin, end - begin);
}

ArenaUse FirstFitArena::Use() const {
  ArenaUse use{total_, total_ - taken_, 0, peak_taken_, allocations_};
  for (const auto& [offset, length] : holes_) use.largest_free = std::max(use.largest_free, length);
  return use;
}

}  // namespace dynamiccl::zero
