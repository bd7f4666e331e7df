// SPDX-License-Identifier: Apache-2.0
// Lines of the LL protocol: 8 bytes, 4 of data in the lower half and the flag in the upper. Each line speaks
// for itself, so lines need no order among each other, and a store or load of several whole lines will do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dynamiccl::hostccl {

using LlLine = std::atomic<uint64_t>;

// `bytes` bytes into as many lines as they take.
void StoreLines(LlLine* lines, const std::byte* data, size_t bytes, uint32_t flag);

// False when a line does not carry the flag yet; `data` then holds anything.
bool LoadLines(const LlLine* lines, std::byte* data, size_t bytes, uint32_t flag);

}  // namespace dynamiccl::hostccl
