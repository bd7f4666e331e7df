// SPDX-License-Identifier: Apache-2.0
// Compares the names that programs give to collectives, algorithms and the like. Nothing is allocated,
// because importers compare names for every call of a file.
#pragma once

#include <strings.h>

#include <string_view>

namespace dynamiccl {

// Whether the names differ in the case of letters at most.
inline bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// Whether the names differ in the case of letters and in underscores at most: "all_reduce" and "AllReduce".
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
