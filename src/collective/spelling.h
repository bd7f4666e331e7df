// SPDX-License-Identifier: Apache-2.0
// Compares names of collectives, algorithms and the like as different programs spell them. The functions
// allocate nothing, because importers compare names for every call in a file.
#pragma once

#include <strings.h>

#include <string_view>

namespace dynamiccl {

// Returns whether the names are equal apart from the case of letters.
inline bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Returns whether the names are equal if case and underscores are ignored: "all_reduce" and "AllReduce".
inline bool SameSpelling(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  for (;;) {
    while (a.starts_with('_')) a.remove_prefix(1);
    while (b.starts_with('_')) b.remove_prefix(1);
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    if (lower(a.front()) != lower(b.front())) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
}

}  // namespace dynamiccl
