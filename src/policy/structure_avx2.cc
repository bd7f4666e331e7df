// SPDX-License-Identifier: Apache-2.0
// The structure LSTM in vectors of 32 bytes, for CPUs with AVX2.
#include <immintrin.h>

#include <utility>

#include "src/policy/structure_kernels.h"

namespace dynamiccl {
namespace {

constexpr int kVectorBytes = 32;

// The sums stay in registers while the weights pass by. No loop over them: of one, g++ makes copies in
// memory.
template <int... kVector>
inline void SumVectors(const __m256i* weights, const __m256i* bias, const int16_t* inputs, int pairs,
                       __m256i* sums, std::integer_sequence<int, kVector...>) {
  __m256i totals[] = {_mm256_load_si256(bias + kVector)...};
  for (int pair = 0; pair < pairs; ++pair) {
    int32_t both;
    __builtin_memcpy(&both, inputs + 2 * pair, sizeof(both));
    const __m256i input = _mm256_set1_epi32(both);
    ((totals[kVector] = _mm256_add_epi32(totals[kVector], _mm256_madd_epi16(weights[kVector], input))), ...);
    weights += sizeof...(kVector);
  }
  (_mm256_store_si256(sums + kVector, totals[kVector]), ...);
}

template <int kRows>
void SumPairs(const int16_t* weights, const int32_t* bias, const int16_t* inputs, int pairs, int32_t* sums) {
  SumVectors(reinterpret_cast<const __m256i*>(weights), reinterpret_cast<const __m256i*>(bias), inputs, pairs,
             reinterpret_cast<__m256i*>(sums), std::make_integer_sequence<int, kRows / 8>());
}

#include "src/policy/structure_step.inc"

}  // namespace

const StructureKernels kAvx2Structure = {Step, Logits, Recognise};

}  // namespace dynamiccl
