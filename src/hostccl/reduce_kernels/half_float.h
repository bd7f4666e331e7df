// SPDX-License-Identifier: Apache-2.0
// Conversion of IEEE 754 binary16 by integer arithmetic, for compilers without such a type (clang 14 on
// x86-64).
#pragma once

#include <bit>
#include <cstdint>

namespace dynamiccl::hostccl {

// Returns the same number as binary32, which can represent every binary16. A NaN keeps its payload.
constexpr float WidenHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0) {  // zero, or a subnormal number: units of 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t widened = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | widened << 23 | mantissa << 13);
}

// Rounds to the nearest binary16, ties to even. A number beyond the largest one becomes an infinity. A NaN
// becomes a quiet NaN with the upper bits of its payload.
constexpr uint16_t NarrowHalf(float value) {
  const auto raw = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(raw >> 16 & 0x8000);
  const uint32_t magnitude = raw & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520, halfway beyond 65504
  if (magnitude < 0x38800000) {                                              // below 2^-14: subnormal
    // The sum lies between 0.5 and 1, where the last mantissa bit is worth 2^-24, the smallest binary16
    // denormal. So the addition rounds to a multiple of 2^-24.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(0.5F)));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - ((127U - 15U) << 23);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

}  // namespace dynamiccl::hostccl
