// SPDX-License-Identifier: Apache-2.0
// Columns are right-aligned, and found by the names in the table's own header line.
#include "traces/import/nccl_tests_rows.h"

#include <algorithm>
#include <cmath>

#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// Half of the last digit of a bandwidth, which has two decimals, plus a margin because most decimal fractions
// have no exact binary form.
constexpr double kHalfDigit = 0.0051;
// Smallest bandwidth that is checked, in GB/s. Smaller ones have too few digits.
constexpr double kLeastBandwidth = 1;

}  // namespace

std::vector<Token> Tokens(std::string_view line) {
  std::vector<Token> tokens;
  const auto words = Words(line);
  tokens.reserve(words.size());
  for (const std::string_view word : words)
    tokens.push_back({word, static_cast<size_t>(word.data() - line.data()) + word.size()});
  return tokens;
}

bool RowTime::CanCheck() const {
  return us && algbw && *algbw >= kLeastBandwidth;
}

bool RowTime::FitsSize(uint64_t bytes) const {
  if (!CanCheck()) return true;
  const double expected = static_cast<double>(bytes) / (1e3 * static_cast<double>(*us));
  // A time has at most two decimals, and some programs print the mean of bandwidths.
  const double tolerance = 0.01 + kHalfDigit / static_cast<double>(*us);
  return std::fabs(expected - *algbw) <= tolerance * expected + kHalfDigit;
}

bool RowTime::FitsFactor(double factor) const {
  if (!CanCheck() || !busbw) return true;
  return std::fabs(*busbw - factor * *algbw) <= (1 + factor) * kHalfDigit + 0.001 * *busbw;
}

RowColumns::RowColumns(std::string_view header, size_t hash) {
  for (const Token& token : Tokens(header.substr(hash + 1)))
    columns_.push_back({std::string(token.text), token.end + hash + 1});
}

std::string_view RowColumns::ValueOf(size_t column, const std::vector<Token>& tokens) const {
  if (tokens.size() == columns_.size()) return tokens[column].text;
  // A value whose end is 4 or more characters away belongs to another column.
  const size_t end = columns_[column].end;
  for (const Token& token : tokens) {
    if (token.end + 4 > end && token.end < end + 4) return token.text;
  }
  return "";
}

std::optional<RowTime> RowColumns::TimeAt(size_t column, const std::vector<Token>& tokens) const {
  RowTime time{.of_host = columns_[column].name == "cputime"};
  const std::string_view text = ValueOf(column, tokens);
  time.us = NumberIn<float>(text);
  if (time.us ? !(*time.us >= 0 && std::isfinite(*time.us)) : text != "N/A") return std::nullopt;
  for (size_t c = column + 1; c < columns_.size() && !IsTime(c); ++c) {
    const std::string_view value = ValueOf(c, tokens);
    if (value.empty()) return std::nullopt;
    if (columns_[c].name == "algbw" && !time.of_host) time.algbw = NumberIn<double>(value);
    if (columns_[c].name == "busbw" && !time.of_host) time.busbw = NumberIn<double>(value);
    // The "error" of older releases is the largest difference, not a count.
    if (columns_[c].name == "#wrong") time.wrong = NumberIn<double>(value).value_or(0) > 0;
  }
  return time;
}

std::optional<TestRow> RowColumns::Row(const std::vector<Token>& tokens) const {
  if (tokens.empty() || tokens.size() > columns_.size() + 1) return std::nullopt;
  const auto bytes = NumberIn<uint64_t>(tokens[0].text);
  if (!bytes) return std::nullopt;
  TestRow row{.bytes = *bytes, .times = {}};
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (!IsTime(c)) continue;
    const auto time = TimeAt(c, tokens);
    if (!time) return std::nullopt;
    row.times.push_back(*time);
  }
  if (row.times.empty()) return std::nullopt;
  return row;
}

}  // namespace dynamiccl
