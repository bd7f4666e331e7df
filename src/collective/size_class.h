// SPDX-License-Identifier: Apache-2.0
// Ranges of message sizes. Decision tables and reports distinguish sizes by these classes and no finer.
//
// A class is a quarter of an octave of the bytes that NCCL issues as one batch. The four classes of the
// octave [2^k, 2^(k+1)) begin at 1, 1.25, 1.5 and 1.75 times 2^k. Only shifts compute a class, so every
// machine finds the same class.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace dynamiccl {

// The class of a size: index = 4 * floor(log2(bytes)) + the next two binary digits of bytes.
struct SizeClass {
  uint8_t index = 0;

  friend bool operator==(SizeClass, SizeClass) = default;
  friend auto operator<=>(SizeClass, SizeClass) = default;
};
// A 64-bit size has 64 octaves with four classes each.
inline constexpr int kSizeClasses = 256;

// Returns the class of a message of `bytes`; 0 and 1 byte share class 0.
SizeClass SizeClassOf(uint64_t bytes);
// Returns the smallest number of bytes in the class. For every class c that SizeClassOf returns,
// SizeClassOf(LowerBound(c)) == c.
uint64_t LowerBound(SizeClass size_class);
// Returns the range with its upper bound excluded: "1M..1.25M".
std::string Name(SizeClass size_class);

// Returns the size in binary units, with at most two digits after the point: "1K", "1.5M", "17".
std::string FormatBytes(uint64_t bytes);
// Reads a text that FormatBytes wrote. K, M and G may have any case and a trailing B. Returns
// kInvalidArgument for any other text.
Result<uint64_t> ParseBytes(std::string_view text);

}  // namespace dynamiccl
