// SPDX-License-Identifier: Apache-2.0
// Message sizes as nccl-tests spells them: "64M", "8", "1.5K", and ranges of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// "4K,64K,1M"
Result<std::vector<uint64_t>> ParseBytesList(const std::string& text);

struct SizeRange {
  uint64_t begin = 32 << 20;
  uint64_t end = 32 << 20;
  uint64_t step = 1 << 20;  // used when factor is 0
  double factor = 0;
};

// Increasing, begin first, never above end. An empty or endless range is an error.
Result<std::vector<uint64_t>> SizesOf(const SizeRange& range);

}  // namespace dynamiccl
