// SPDX-License-Identifier: Apache-2.0
// Stores and loads LL lines by accesses of 16 bytes, two lines at a time. x86 never splits the aligned 8-byte
// halves of such an access. Each turn of the loops handles four lines.
#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "src/hostccl/protocols/ll_lines.h"
#include "src/transport/fifo.h"

namespace dynamiccl::hostccl {
namespace {

constexpr size_t kTurnBytes = 4 * kLlLineData;

__m128i* Pair(LlLine* lines, size_t line) {
  return reinterpret_cast<__m128i*>(lines + line);
}
const __m128i* Pair(const LlLine* lines, size_t line) {
  return reinterpret_cast<const __m128i*>(lines + line);
}

}  // namespace

void StoreLines(LlLine* lines, const std::byte* data, size_t bytes, uint32_t flag) {
  const __m128i flags = _mm_set1_epi32(static_cast<int>(flag));
  size_t at = 0;
  for (; at + kTurnBytes <= bytes; at += kTurnBytes) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at));
    _mm_storeu_si128(Pair(lines, at / kLlLineData), _mm_unpacklo_epi32(values, flags));
    _mm_storeu_si128(Pair(lines, at / kLlLineData + 2), _mm_unpackhi_epi32(values, flags));
  }
  for (; at < bytes; at += kLlLineData) {
    uint32_t value = 0;
    std::memcpy(&value, data + at, std::min(kLlLineData, bytes - at));
    lines[at / kLlLineData].store(uint64_t{flag} << 32 | value, std::memory_order_relaxed);
  }
}

bool LoadLines(const LlLine* lines, std::byte* data, size_t bytes, uint32_t flag) {
  // While the first line is missing, the other lines are not read, because the sender may be writing them.
  if (static_cast<uint32_t>(lines[0].load(std::memory_order_relaxed) >> 32) != flag) return false;
  const __m128i flags = _mm_set1_epi32(static_cast<int>(flag));
  __m128i equal = _mm_set1_epi32(-1);
  size_t at = 0;
  for (; at + kTurnBytes <= bytes; at += kTurnBytes) {
    const __m128 low = _mm_castsi128_ps(_mm_loadu_si128(Pair(lines, at / kLlLineData)));
    const __m128 high = _mm_castsi128_ps(_mm_loadu_si128(Pair(lines, at / kLlLineData + 2)));
    const __m128i values = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i found = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
    equal = _mm_and_si128(equal, _mm_cmpeq_epi32(found, flags));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(data + at), values);
  }
  if (_mm_movemask_epi8(equal) != 0xffff) return false;
  for (; at < bytes; at += kLlLineData) {
    const uint64_t line = lines[at / kLlLineData].load(std::memory_order_relaxed);
    if (static_cast<uint32_t>(line >> 32) != flag) return false;
    const auto value = static_cast<uint32_t>(line);
    std::memcpy(data + at, &value, std::min(kLlLineData, bytes - at));
  }
  return true;
}

}  // namespace dynamiccl::hostccl
