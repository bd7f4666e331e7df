// SPDX-License-Identifier: Apache-2.0
// The structure LSTM in vectors of 32 bytes, for CPUs with AVX2. The 16 units of a block are computed side by
// side. The sums of their four gates stay in eight registers and become table indices, 16 in a vector of
// int16. The table values are loaded one by one; cells and hidden state are computed in vectors again.
#include <immintrin.h>

#include <utility>

#include "src/policy/structure_kernels.h"

namespace dynamiccl {
namespace {

constexpr int kVectorBytes = 32;
static_assert(kBlockUnits == 16);

// Adds up the gates' sums, which stay in registers while the weights are streamed. There is no loop over the
// sums, because g++ would then copy them to memory.
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
inline void SumPairs(const int16_t* weights, const int32_t* bias, const int16_t* inputs, int pairs,
                     int32_t* sums) {
  SumVectors(reinterpret_cast<const __m256i*>(weights), reinterpret_cast<const __m256i*>(bias), inputs, pairs,
             reinterpret_cast<__m256i*>(sums), std::make_integer_sequence<int, kRows / 8>());
}

#include "src/policy/structure_answers.inc"

// The inputs of a step of the network: the token, then the hidden state.
struct alignas(64) Inputs {
  Inputs(const int16_t* token, const LstmState& state) {
    __builtin_memcpy(columns, token, kTokenFeatures * sizeof(int16_t));
    __builtin_memcpy(columns + kTokenFeatures, state.hidden, sizeof(state.hidden));
  }
  int16_t columns[kGateColumns];
};

inline void SumBlock(const PackedStructure& network, const Inputs& inputs, int block, int32_t* sums) {
  SumPairs<kBlockRows>(&network.gate_weights[block][0][0][0], network.gate_bias[block], inputs.columns,
                       kGatePairs, sums);
}

void Gates(const PackedStructure& network, const int16_t* token, const LstmState& state, int32_t* sums) {
  const Inputs inputs(token, state);
  for (int block = 0; block < kUnitBlocks; ++block)
    SumBlock(network, inputs, block, sums + block * kBlockRows);
}

// Turns 16 sums into offsets from the middle of a table, limited to the table's range. The 16 values of two
// vectors are in the order in which the pack instruction leaves them: 0 to 3, 8 to 11, 4 to 7, 12 to 15.
// Unpacking undoes this order, so only the hidden state is put in order at the end.
inline __m256i EntriesOf(__m256i first, __m256i second, int shift) {
  const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
  const __m128i bits = _mm_cvtsi32_si128(shift);
  const __m256i entries = _mm256_packs_epi32(_mm256_sra_epi32(_mm256_add_epi32(first, half), bits),
                                             _mm256_sra_epi32(_mm256_add_epi32(second, half), bits));
  constexpr int kHalf = kTableEntries / 2;
  return _mm256_min_epi16(_mm256_max_epi16(entries, _mm256_set1_epi16(-kHalf)), _mm256_set1_epi16(kHalf - 1));
}
inline __m256i EntriesOf(const int32_t* sums, int shift) {
  const auto* const vectors = reinterpret_cast<const __m256i*>(sums);
  return EntriesOf(vectors[0], vectors[1], shift);
}

// Loads table values from memory directly into their places of the register. Storing them one by one and then
// loading them as one vector would have to wait for the cache, and gather instructions are slow on many
// processors.
inline __m128i Pick(const int16_t* middle, __m128i entries) {
  const int64_t low = _mm_cvtsi128_si64(entries), high = _mm_extract_epi64(entries, 1);
  __m128i values = _mm_cvtsi32_si128(middle[static_cast<int16_t>(low)]);
  values = _mm_insert_epi16(values, middle[static_cast<int16_t>(low >> 16)], 1);
  values = _mm_insert_epi16(values, middle[static_cast<int16_t>(low >> 32)], 2);
  values = _mm_insert_epi16(values, middle[low >> 48], 3);
  values = _mm_insert_epi16(values, middle[static_cast<int16_t>(high)], 4);
  values = _mm_insert_epi16(values, middle[static_cast<int16_t>(high >> 16)], 5);
  values = _mm_insert_epi16(values, middle[static_cast<int16_t>(high >> 32)], 6);
  return _mm_insert_epi16(values, middle[high >> 48], 7);
}
inline __m256i PickFrom(const int16_t* table, __m256i entries) {
  const int16_t* const middle = table + kTableEntries / 2;
  return _mm256_set_m128i(Pick(middle, _mm256_extracti128_si256(entries, 1)),
                          Pick(middle, _mm256_castsi256_si128(entries)));
}

// Returns the new cells of 8 units. `gates` has pairs of input and forget gate. In `candidates`, each value
// has 16 zero bits above it. The old cell is put there, so that one instruction multiplies and adds both
// products.
inline __m256i NewCells(__m256i gates, __m256i candidates, __m256i cells) {
  const __m256i products =
      _mm256_madd_epi16(gates, _mm256_or_si256(candidates, _mm256_slli_epi32(cells, 16)));
  const __m256i rounded =
      _mm256_srai_epi32(_mm256_add_epi32(products, _mm256_set1_epi32(1 << (kGateOneBits - 1))), kGateOneBits);
  return _mm256_min_epi32(_mm256_max_epi32(rounded, _mm256_set1_epi32(-kCellLimit)),
                          _mm256_set1_epi32(kCellLimit));
}

// Computes the new cells and hidden state of a block.
inline void Activate(const PackedStructure& network, const int32_t* sums, int32_t* cell, int16_t* hidden) {
  const int shift = network.gate_shift;
  const __m256i in = PickFrom(network.sigmoid_table, EntriesOf(sums, shift));
  const __m256i forget = PickFrom(network.sigmoid_table, EntriesOf(sums + kBlockUnits, shift));
  const __m256i candidate = PickFrom(network.tanh_table, EntriesOf(sums + 2 * kBlockUnits, shift));
  const __m256i out = PickFrom(network.sigmoid_table, EntriesOf(sums + 3 * kBlockUnits, shift));
  const __m256i zero = _mm256_setzero_si256();
  auto* const cells = reinterpret_cast<__m256i*>(cell);
  cells[0] = NewCells(_mm256_unpacklo_epi16(in, forget), _mm256_unpacklo_epi16(candidate, zero), cells[0]);
  cells[1] = NewCells(_mm256_unpackhi_epi16(in, forget), _mm256_unpackhi_epi16(candidate, zero), cells[1]);
  const __m256i squashed =
      PickFrom(network.tanh_table, EntriesOf(cells[0], cells[1], kTokenFractionBits - kTableFractionBits));
  // The instruction multiplies and rounds halves up at the 15th bit, which is the rounding of kGateOneBits.
  static_assert(kGateOneBits == 15);
  const __m256i value = _mm256_mulhrs_epi16(out, squashed);
  *reinterpret_cast<__m256i*>(hidden) = _mm256_permute4x64_epi64(value, 0xd8);
}

void Step(const PackedStructure& network, const int16_t* token, LstmState& state) {
  const Inputs inputs(token, state);
  for (int block = 0; block < kUnitBlocks; ++block) {
    alignas(64) int32_t sums[kBlockRows];
    SumBlock(network, inputs, block, sums);
    Activate(network, sums, state.cell + block * kBlockUnits, state.hidden + block * kBlockUnits);
  }
}

}  // namespace

const StructureKernels kAvx2Structure = {Step, Gates, Logits, Recognise};

}  // namespace dynamiccl
