// SPDX-License-Identifier: Apache-2.0
// The reduction kernels with vectors ("packs") of 64 bytes, for CPUs with AVX-512 F, BW, DQ and VL. Only this
// file is compiled for these instructions.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {

constexpr size_t kPackBytes = 64;
#include "src/hostccl/reduce_kernels/packs.inc"

// A mask of all lanes. The masked intrinsics are used because the plain ones start from an undefined
// register, about which GCC 12 warns.
constexpr __mmask16 kAllLanes = 0xffff;

Floats WidenHalf(Halves bits) {
  return __builtin_bit_cast(Floats, _mm512_maskz_cvtph_ps(kAllLanes, __builtin_bit_cast(__m256i, bits)));
}

Halves NarrowHalf(Floats values) {
  return __builtin_bit_cast(Halves, _mm512_maskz_cvtps_ph(kAllLanes, __builtin_bit_cast(__m512, values),
                                                          _MM_FROUND_TO_NEAREST_INT));
}

// Stores a vector past the caches. `to` must be aligned to the vector's size.
template <typename V>
void StreamPack(std::byte* to, V pack) {
  if constexpr (sizeof pack == 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __builtin_bit_cast(__m512i, pack));
  } else if constexpr (sizeof pack == 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, pack));
  } else {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, pack));
  }
}

void FenceStreams() {
  _mm_sfence();
}

#include "src/hostccl/reduce_kernels/packed_loops.inc"
#include "src/hostccl/reduce_kernels/select_kernels.inc"

}  // namespace

TypeKernels Avx512Kernels(DataType type, ReduceOp op) {
  return Select(type, op);
}

}  // namespace dynamiccl::hostccl
