// SPDX-License-Identifier: Apache-2.0
// Counts in messages: "1 call", "2 calls", "3 processes".
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace dynamiccl {

// Returns the count and the noun, which gets its plural unless the count is 1: -es after -s and -h, else -s.
// Nouns with another plural, such as those in -y, are not handled.
template <std::integral Count>
std::string Counted(Count count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  return fmt::format("{} {}{}", count, noun, noun.ends_with('s') || noun.ends_with('h') ? "es" : "s");
}

}  // namespace dynamiccl
