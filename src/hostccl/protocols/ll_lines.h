// SPDX-License-Identifier: Apache-2.0
// Lines of the LL protocol: 8 bytes, with 4 bytes of data in the lower half and the flag in the upper half.
// Each line is valid by itself, so lines may be stored and loaded in any order, and one access may store or
// load several whole lines.
//   bits 63..32  flag (step | 2^31)      bits 31..0  data
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dynamiccl::hostccl {

using LlLine = std::atomic<uint64_t>;

// Stores `bytes` bytes into as many lines as they need, all with this flag.
void StoreLines(LlLine* lines, const std::byte* data, size_t bytes, uint32_t flag);

// Loads `bytes` bytes. Returns false when a line does not carry this flag yet; the contents of `data` are
// then undefined.
bool LoadLines(const LlLine* lines, std::byte* data, size_t bytes, uint32_t flag);

}  // namespace dynamiccl::hostccl
