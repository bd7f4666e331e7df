// SPDX-License-Identifier: Apache-2.0
// Parses message sizes as nccl-tests spells them ("64M", "8", "1.5K"), in lists and ranges.
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
  // Distance between sizes in bytes; used when `factor` is 0.
  uint64_t step = 1 << 20;
  double factor = 0;
};

// Returns the sizes in increasing order: `begin` first, none above `end`. It is an error if the range is
// empty, does not grow, or has more than 10000 sizes.
Result<std::vector<uint64_t>> SizesOf(const SizeRange& range);

}  // namespace dynamiccl
