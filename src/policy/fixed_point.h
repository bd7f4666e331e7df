// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic of the networks: products of int16 summed in int32. The policy file is checked to keep
// every sum below 2^31, so the order of addition, and with it the vector width, cannot change a bit.
#pragma once

#include <cstdint>

namespace dynamiccl {

// GCC turns it into multiply-add instructions on pairs at every width.
template <int N>
inline int32_t Dot(const int16_t* a, const int16_t* b) {
  int32_t sum = 0;
  for (int i = 0; i < N; ++i) sum += static_cast<int32_t>(a[i]) * static_cast<int32_t>(b[i]);
  return sum;
}

// Halves round up; `bits` >= 1, and value + 2^(bits - 1) must not overflow.
inline int32_t RoundShift(int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

}  // namespace dynamiccl
