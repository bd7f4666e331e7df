// SPDX-License-Identifier: Apache-2.0
// Splits lines of text into comma-separated fields, words and numbers. Views point into the text that is
// passed in.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace dynamiccl {

// The text without blanks around it.
std::string_view Trimmed(std::string_view text);

// The trimmed fields of a comma-separated line. A field in double quotes may hold commas and loses the
// quotes; a quote inside such a field is not supported.
std::vector<std::string_view> CommaFields(std::string_view line);

// The words of a line, which are separated by blanks.
std::vector<std::string_view> Words(std::string_view line);

// Parses all of `text` as a number; nothing if it is none.
template <typename T>
std::optional<T> NumberIn(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace dynamiccl
