// SPDX-License-Identifier: Apache-2.0
// Message sizes as nccl-tests spells them: "64M", "8", "1.5K", and ranges of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// K, M and G are binary, with or without a trailing B, in any case.
Result<uint64_t> ParseBytes(std::string_view text);

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
