// SPDX-License-Identifier: Apache-2.0
#include "tests/real_nccl/cuda_standin/free_ranges.h"

#include <iterator>

namespace cuda_standin {

std::optional<size_t> FreeRanges::Take(size_t bytes, size_t alignment) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [begin, room] = *range;
    const size_t start = (begin + alignment - 1) / alignment * alignment;
    const size_t skipped = start - begin;
    if (room < skipped + bytes) continue;
    free_.erase(range);
    if (skipped > 0) free_[begin] = skipped;
    if (room > skipped + bytes) free_[start + bytes] = room - skipped - bytes;
    return start;
  }
  return std::nullopt;
}

void FreeRanges::Return(size_t begin, size_t bytes) {
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && begin + bytes == after->first) {
    bytes += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  free_[begin] = bytes;
}

}  // namespace cuda_standin
