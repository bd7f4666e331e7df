// SPDX-License-Identifier: Apache-2.0
// Merges three or more consecutive ranks into "first to last".
#include "tools/hang/hang_checks.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace dynamiccl {

std::string RankList(std::span<const int32_t> ranks) {
  const std::set<int32_t> sorted(ranks.begin(), ranks.end());
  if (sorted.empty()) return "no rank";
  std::vector<std::string> parts;
  for (auto first = sorted.begin(); first != sorted.end();) {
    auto end = std::next(first);
    int32_t last = *first;
    while (end != sorted.end() && *end == last + 1) last = *end++;
    if (last - *first >= 2) {
      parts.push_back(fmt::format("{} to {}", *first, last));
    } else {
      for (int32_t rank = *first; rank <= last; ++rank) parts.push_back(fmt::format("{}", rank));
    }
    first = end;
  }
  std::string text = sorted.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

}  // namespace dynamiccl
