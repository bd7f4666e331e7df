// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic of the networks: products of int16 that are summed in int32. Reading a policy checks
// that every sum stays below 2^31. So the order of the additions, and with it the vector width, cannot change
// a bit.
#pragma once

#include <cstdint>

namespace dynamiccl {

// Returns the dot product of two vectors. GCC compiles it to multiply-add instructions on pairs at every
// vector width.
template <int N>
inline int32_t Dot(const int16_t* a, const int16_t* b) {
  int32_t sum = 0;
  for (int i = 0; i < N; ++i) sum += static_cast<int32_t>(a[i]) * static_cast<int32_t>(b[i]);
  return sum;
}

// value / 2^bits, rounded to the nearest; halves round up. `bits` >= 1, and value + 2^(bits - 1) must not
// overflow.
inline int32_t RoundShift(int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

}  // namespace dynamiccl
