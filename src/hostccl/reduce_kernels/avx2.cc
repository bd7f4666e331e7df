// SPDX-License-Identifier: Apache-2.0
// The reduction kernels with vectors ("packs") of 32 bytes, for CPUs with AVX2 and F16C. Only this file is
// compiled for these instructions.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/hostccl/reduce_kernels/kernel_set.h"

namespace dynamiccl::hostccl {
namespace {

constexpr size_t kPackBytes = 32;
#include "src/hostccl/reduce_kernels/packs.inc"

Floats WidenHalf(Halves bits) {
  return __builtin_bit_cast(Floats, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, bits)));
}

Halves NarrowHalf(Floats values) {
  return __builtin_bit_cast(Halves,
                            _mm256_cvtps_ph(__builtin_bit_cast(__m256, values), _MM_FROUND_TO_NEAREST_INT));
}

// Stores a vector past the caches. `to` must be aligned to the vector's size.
template <typename V>
void StreamPack(std::byte* to, V pack) {
  if constexpr (sizeof pack == 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, pack));
  } else if constexpr (sizeof pack == 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, pack));
  } else {
    _mm_stream_si64(reinterpret_cast<long long*>(to), __builtin_bit_cast(long long, pack));
  }
}

void FenceStreams() {
  _mm_sfence();
}

#include "src/hostccl/reduce_kernels/packed_loops.inc"
#include "src/hostccl/reduce_kernels/select_kernels.inc"

}  // namespace

TypeKernels Avx2Kernels(DataType type, ReduceOp op) {
  return Select(type, op);
}

}  // namespace dynamiccl::hostccl
