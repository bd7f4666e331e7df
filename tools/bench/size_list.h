// SPDX-License-Identifier: Apache-2.0
// Message sizes as nccl-tests spells them ("64M", "8", "1.5K"), as lists and ranges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// Parses "4K,64K,1M" into bytes.
Result<std::vector<uint64_t>> ParseBytesList(const std::string& text);

// Sizes from `begin` to `end`, in bytes.
struct SizeRange {
  uint64_t begin = 32 << 20;
  uint64_t end = 32 << 20;
  // Distance between sizes in bytes; used when factor is 0.
  uint64_t step = 1 << 20;
  double factor = 0;
};

// The sizes in increasing order: `begin` first, never above `end`. A range that is empty, that does not grow
// or that has more than 10000 sizes is an error.
Result<std::vector<uint64_t>> SizesOf(const SizeRange& range);

}  // namespace dynamiccl
