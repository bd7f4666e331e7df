// SPDX-License-Identifier: Apache-2.0
// Message-size ranges of a quarter octave of NCCL's batched bytes: the resolution of decision tables and
// reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

// Four classes an octave, at 1, 1.25, 1.5 and 1.75 times a power of two: only shifts, so equal on every
// machine.
struct SizeClass {
  uint8_t index = 0;

  friend bool operator==(SizeClass, SizeClass) = default;
  friend auto operator<=>(SizeClass, SizeClass) = default;
};
inline constexpr int kSizeClasses = 256;

// 0 and 1 byte share class 0.
SizeClass SizeClassOf(uint64_t bytes);
// Smallest number of bytes in the class; SizeClassOf(LowerBound(c)) == c for every class that SizeClassOf
// returns.
uint64_t LowerBound(SizeClass size_class);
// "1M..1.25M"
std::string Name(SizeClass size_class);

// "1K", "1.5M", "17": binary units, at most two digits after the point.
std::string FormatBytes(uint64_t bytes);
// The way back; K, M and G in any case, with or without a trailing B.
Result<uint64_t> ParseBytes(std::string_view text);

}  // namespace dynamiccl
