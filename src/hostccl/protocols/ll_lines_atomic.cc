// SPDX-License-Identifier: Apache-2.0
// Stores and loads each LL line by one atomic access. For CPUs without SSE2, and for ThreadSanitizer, which
// only understands atomic accesses.
#include <algorithm>
#include <cstring>

#include "src/hostccl/protocols/ll_lines.h"
#include "src/transport/fifo.h"

namespace dynamiccl::hostccl {

void StoreLines(LlLine* lines, const std::byte* data, size_t bytes, uint32_t flag) {
  for (size_t at = 0; at < bytes; at += kLlLineData) {
    uint32_t value = 0;
    std::memcpy(&value, data + at, std::min(kLlLineData, bytes - at));
    lines[at / kLlLineData].store(uint64_t{flag} << 32 | value, std::memory_order_relaxed);
  }
}

bool LoadLines(const LlLine* lines, std::byte* data, size_t bytes, uint32_t flag) {
  for (size_t at = 0; at < bytes; at += kLlLineData) {
    const uint64_t line = lines[at / kLlLineData].load(std::memory_order_relaxed);
    if (static_cast<uint32_t>(line >> 32) != flag) return false;
    const auto value = static_cast<uint32_t>(line);
    std::memcpy(data + at, &value, std::min(kLlLineData, bytes - at));
  }
  return true;
}

}  // namespace dynamiccl::hostccl
