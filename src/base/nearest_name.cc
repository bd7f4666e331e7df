// SPDX-License-Identifier: Apache-2.0
// Levenshtein distance by dynamic programming over one row of the table (Wagner and Fischer, 1974).
// `diagonal` holds the value of the previous row that the row in place has already overwritten.
#include "src/base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace dynamiccl {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Names are short, so the quadratic time does not matter.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

std::string NearestName(std::string_view name, std::span<const std::string_view> known) {
  const auto closer = [&](std::string_view a, std::string_view b) {
    return EditDistance(name, a) < EditDistance(name, b);
  };
  const auto nearest = std::min_element(known.begin(), known.end(), closer);
  return nearest == known.end() ? std::string() : std::string(*nearest);
}

std::string SimilarName(std::string_view name, std::span<const std::string_view> known) {
  std::string nearest = NearestName(name, known);
  return EditDistance(name, nearest) <= name.size() / 2 ? nearest : std::string();
}

}  // namespace dynamiccl
