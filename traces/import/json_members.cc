// SPDX-License-Identifier: Apache-2.0
// A hand-written scanner: strings and brackets are skipped by their ends, so a value is found without being
// parsed.
#include "traces/import/json_members.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace dynamiccl {
namespace {

// The position after the closing quote of the string that opens at `at`; npos without one.
size_t EndOfString(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return std::string_view::npos;
}

// The position after the bracket that closes the one at `at`; npos without one.
size_t EndOfBrackets(std::string_view text, size_t at) {
  for (int depth = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = EndOfString(text, at);
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return std::string_view::npos;
}

// The position after the value that begins at `at`; npos if no value begins there.
size_t EndOfValue(std::string_view text, size_t at) {
  if (at >= text.size()) return std::string_view::npos;
  if (text[at] == '"') return EndOfString(text, at);
  if (text[at] == '{' || text[at] == '[') return EndOfBrackets(text, at);
  size_t end = at;
  while (end < text.size() && !EndsJsonWord(text[end])) ++end;
  return end == at || end == text.size() ? std::string_view::npos : end;
}

// The content of a string value; other values are returned unchanged.
std::string_view WithoutQuotes(std::string_view value) {
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

template <typename T>
std::optional<T> WholeNumber(std::string_view value) {
  value = WithoutQuotes(value);
  T number = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc() || end != value.data() + value.size()) return std::nullopt;
  return number;
}

}  // namespace

char JsonMembers::Peek() {
  while (at_ < text_.size() && IsJsonBlank(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

std::optional<std::string_view> JsonMembers::Value() {
  const size_t begin = at_;
  const size_t end = EndOfValue(text_, begin);
  if (end == std::string_view::npos) return std::nullopt;
  at_ = end;
  return text_.substr(begin, end - begin);
}

std::optional<JsonMember> JsonMembers::Break() {
  broken_ = true;
  return std::nullopt;
}

// Expects '{' or ',', then a key, ':' and a value.
std::optional<JsonMember> JsonMembers::Next() {
  if (broken_) return std::nullopt;
  const bool first = at_ == 0;
  const char lead = Peek();
  if (!first && lead == '}') return at_ + 1 == text_.size() ? std::nullopt : Break();
  if (lead != (first ? '{' : ',')) return Break();
  ++at_;
  const char begin = Peek();
  if (first && begin == '}') return at_ + 1 == text_.size() ? std::nullopt : Break();
  if (begin != '"') return Break();
  const auto key = Value();
  if (!key || Peek() != ':') return Break();
  ++at_;
  Peek();
  const auto value = Value();
  if (!value) return Break();
  return JsonMember{WithoutQuotes(*key), *value};
}

std::optional<std::string_view> NextJsonElement(std::string_view array, size_t& at) {
  if (at == 0) {
    if (!array.starts_with('[')) return std::nullopt;
    at = 1;
  }
  while (at < array.size() && (IsJsonBlank(array[at]) || array[at] == ',')) ++at;
  if (at >= array.size() || array[at] == ']') return std::nullopt;
  const size_t begin = at;
  at = EndOfValue(array, begin);
  if (at == std::string_view::npos) return std::nullopt;
  return array.substr(begin, at - begin);
}

std::string JsonText(std::string_view value) {
  const std::string_view inside = WithoutQuotes(value);
  if (inside.size() == value.size() || inside.find('\\') == std::string_view::npos)
    return std::string(inside);
  const auto parsed = nlohmann::json::parse(value, nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string(inside);
}

std::optional<int64_t> JsonInteger(std::string_view value) {
  return WholeNumber<int64_t>(value);
}

std::optional<uint64_t> JsonUnsigned(std::string_view value) {
  return WholeNumber<uint64_t>(value);
}

std::optional<int64_t> JsonMicroseconds(std::string_view value) {
  // Largest time in microseconds. The sum of two such times in nanoseconds fits into 64 bits.
  constexpr int64_t kLimit = INT64_MAX / 4000;
  value = WithoutQuotes(value);
  const bool negative = value.starts_with('-');
  const size_t point = value.find('.');
  const std::string_view digits = value.substr(0, point);
  const std::string_view decimals = point == std::string_view::npos ? "" : value.substr(point + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!std::all_of(decimals.begin(), decimals.end(), is_digit) || value.find_first_of("eE") != value.npos) {
    double number = 0;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code != std::errc() || end != value.data() + value.size() || !(number == number)) return std::nullopt;
    const auto limit = static_cast<double>(kLimit);
    return static_cast<int64_t>(std::clamp(number, -limit, limit) * 1000);
  }
  int64_t whole = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (end != digits.data() + digits.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc::result_out_of_range) whole = negative ? -kLimit : kLimit;
  int64_t fraction = 0;
  int64_t unit = 100;
  for (size_t i = 0; i < decimals.size() && unit > 0; ++i, unit /= 10) fraction += (decimals[i] - '0') * unit;
  return std::clamp(whole, -kLimit, kLimit) * 1000 + (negative ? -fraction : fraction);
}

}  // namespace dynamiccl
