// SPDX-License-Identifier: Apache-2.0
// SHA-256's blocks by the SHA instructions of x86-64. One such instruction computes two rounds, with the
// eight words of the state in two registers: a, b, e and f in one, c, d, g and h in the other.
#include <cpuid.h>
#include <immintrin.h>

#include "src/base/sha256_blocks.h"

namespace dynamiccl {

// clang 14's __builtin_cpu_supports does not know this feature.
bool HasShaInstructions() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (ebx & bit_SHA) != 0;
}

void MixByInstructions(uint32_t* state, const uint8_t* block) {
  const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  auto* const halves = reinterpret_cast<__m128i*>(state);
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(halves), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(halves + 1), 0x1b);
  const __m128i abef_before = _mm_alignr_epi8(badc, hgfe, 8);
  const __m128i cdgh_before = _mm_blend_epi16(hgfe, badc, 0xf0);
  __m128i abef = abef_before, cdgh = cdgh_before;
  __m128i words[16];  // the message schedule, four words in each
  for (int i = 0; i < 16; ++i) {
    if (i < 4) {
      const auto* const read = reinterpret_cast<const __m128i*>(block) + i;
      words[i] = _mm_shuffle_epi8(_mm_loadu_si128(read), big_endian);
    } else {
      const __m128i seven_before = _mm_alignr_epi8(words[i - 1], words[i - 2], 4);
      const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(words[i - 4], words[i - 3]), seven_before);
      words[i] = _mm_sha256msg2_epu32(sum, words[i - 1]);
    }
    const auto* const constants = reinterpret_cast<const __m128i*>(kSha256Constants) + i;
    const __m128i added = _mm_add_epi32(words[i], _mm_load_si128(constants));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
  }
  const __m128i feba = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
  _mm_storeu_si128(halves, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(halves + 1, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace dynamiccl
