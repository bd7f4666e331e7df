// SPDX-License-Identifier: Apache-2.0
// Expands lists and ranges of sizes.
#include "tools/bench/size_list.h"

namespace dynamiccl {
namespace {

// The most sizes of one list. A longer list means that the user mistyped the step.
constexpr size_t kMaxSizes = 10000;

}  // namespace

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
    if (sizes.size() > kMaxSizes)
      return MakeError(ErrorKind::kInvalidArgument, "more than {} sizes", kMaxSizes);
    bytes = next;
  }
  return sizes;
}

}  // namespace dynamiccl
