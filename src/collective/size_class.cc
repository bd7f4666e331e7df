// SPDX-License-Identifier: Apache-2.0
// Arithmetic and text form of size classes. See size_class.h.
#include "src/collective/size_class.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <charconv>

namespace dynamiccl {
namespace {

// Returns the binary logarithm of a unit (10 for "K"); -1 for an unknown unit.
int ShiftOf(std::string_view unit) {
  if (unit.size() == 2 && std::tolower(static_cast<unsigned char>(unit[1])) == 'b') unit.remove_suffix(1);
  if (unit.empty()) return 0;
  if (unit.size() > 1) return -1;
  switch (std::tolower(static_cast<unsigned char>(unit[0]))) {
    case 'b':
      return 0;
    case 'k':
      return 10;
    case 'm':
      return 20;
    case 'g':
      return 30;
    default:
      return -1;
  }
}

}  // namespace

[[gnu::hot]] SizeClass SizeClassOf(uint64_t bytes) {
  if (bytes <= 1) return {0};
  const int octave = std::bit_width(bytes) - 1;
  // Below four bytes a quarter of an octave is not a whole number of bytes. Shifting to the left gives the
  // same formula.
  const uint64_t quarter = octave >= 2 ? (bytes >> (octave - 2)) & 3 : (bytes << (2 - octave)) & 3;
  return {static_cast<uint8_t>(octave * 4 + static_cast<int>(quarter))};
}

uint64_t LowerBound(SizeClass size_class) {
  const int octave = size_class.index / 4;
  const uint64_t quarters = 4 + size_class.index % 4;
  return octave >= 2 ? quarters << (octave - 2) : (quarters + (1u << (2 - octave)) - 1) >> (2 - octave);
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"", "K", "M", "G", "T", "P", "E"};
  const int unit = bytes == 0 ? 0 : (std::bit_width(bytes) - 1) / 10;
  const double value = static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << (10 * unit));
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + kUnits[unit];
}

Result<uint64_t> ParseBytes(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const int shift = error == std::errc() ? ShiftOf(text.substr(static_cast<size_t>(end - text.data()))) : -1;
  const double bytes = shift < 0 ? -1 : value * static_cast<double>(uint64_t{1} << shift);
  if (!(bytes >= 0 && bytes < 0x1p63)) {  // NaN too
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "'{}' is no number of bytes", text),
                    "write 8, 64K, 1.5M or 1G");
  }
  return static_cast<uint64_t>(bytes);
}

std::string Name(SizeClass size_class) {
  const bool last = size_class.index == kSizeClasses - 1;
  const std::string upper =
      last ? "16E" : FormatBytes(LowerBound({static_cast<uint8_t>(size_class.index + 1)}));
  return FormatBytes(LowerBound(size_class)) + ".." + upper;
}

}  // namespace dynamiccl
