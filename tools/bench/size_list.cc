// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/size_list.h"

#include <cctype>
#include <charconv>

namespace dynamiccl {
namespace {

// A list longer than this is a mistyped step, not a benchmark.
constexpr size_t kMostSizes = 10000;

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

Result<uint64_t> ParseBytes(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const int shift = error == std::errc() ? ShiftOf(text.substr(static_cast<size_t>(end - text.data()))) : -1;
  if (shift < 0 || !(value >= 0 && value < 1e15)) {  // NaN too
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "'{}' is no number of bytes", text),
                    "write 8, 64K, 1.5M or 1G");
  }
  return static_cast<uint64_t>(value * static_cast<double>(uint64_t{1} << shift));
}

Result<std::vector<uint64_t>> ParseBytesList(const std::string& text) {
  std::vector<uint64_t> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    DYNAMICCL_TRY(const uint64_t bytes, ParseBytes(std::string_view(text).substr(begin, end - begin)));
    sizes.push_back(bytes);
    begin = end + 1;
  }
  return sizes;
}

Result<std::vector<uint64_t>> SizesOf(const SizeRange& range) {
  if (range.begin > range.end) {
    return MakeError(ErrorKind::kInvalidArgument, "smallest size {} is above the largest {}", range.begin,
                     range.end);
  }
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = range.begin; bytes <= range.end;) {
    sizes.push_back(bytes);
    const auto next = range.factor > 0 ? static_cast<uint64_t>(static_cast<double>(bytes) * range.factor)
                                       : bytes + range.step;
    if (next <= bytes && bytes < range.end) {
      return MakeError(ErrorKind::kInvalidArgument,
                       "sizes do not grow after {}: factor above 1 or step above 0 needed", bytes);
    }
    if (next <= bytes) break;
    if (sizes.size() > kMostSizes)
      return MakeError(ErrorKind::kInvalidArgument, "more than {} sizes", kMostSizes);
    bytes = next;
  }
  return sizes;
}

}  // namespace dynamiccl
