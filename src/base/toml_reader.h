// SPDX-License-Identifier: Apache-2.0
// TOML files read strictly: an unknown key, a wrong type or a value out of range is an error with file, line
// and column. Include this header in few files: toml++ takes seconds to compile.
#pragma once

#define TOML_EXCEPTIONS 0
// toml++ 3.3 has assertions that a damaged file can break, although toml++ reports the damage as an error
// right afterwards. With NDEBUG it even tells Clang to assume them. Neither may end a job, so its assertions
// are compiled to nothing.
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl {

// Returns the position of the first character that toml++ 3.3 must not see; text.npos if there is none. There
// are two kinds:
// - A character outside ASCII. It is allowed only in a comment, or in a one-line text whose quote follows a
//   blank. Elsewhere it may reach code of toml++ that is declared unreachable. After a number without a
//   blank, toml++ takes all that follows for a part of the number, quotes too. If the file has three quotes
//   in a row, which may begin a text of several lines, the character is allowed nowhere.
// - A control character, which TOML allows nowhere. After one, toml++ may take what looks like a text for a
//   key.
inline size_t FindUnsafeCharacter(std::string_view text) {
  const bool several_lines = text.find("\"\"\"") != text.npos || text.find("'''") != text.npos;
  // The quote that ends the current text, '#' in a comment, 0 outside both.
  char inside = 0;
  bool any_allowed = false;
  for (size_t i = text.starts_with("\xef\xbb\xbf") ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      inside = 0;
    } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
      return i;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      if (inside == 0 || !any_allowed) return i;
    } else if (inside == '"' && c == '\\') {
      if (text.substr(i + 1).starts_with('"') || text.substr(i + 1).starts_with('\\')) ++i;
    } else if (inside == 0 && (c == '"' || c == '\'' || c == '#')) {
      inside = c;
      any_allowed = !several_lines && (c == '#' || (i > 0 && (text[i - 1] == ' ' || text[i - 1] == '\t')));
    } else if (c == inside && c != '#') {
      inside = 0;
    }
  }
  return text.npos;
}

// Parses `text`. `source` is the file's name for messages. Errors are kInvalidArgument.
inline Result<toml::table> ParseToml(std::string_view text, const std::string& source) {
  if (const size_t at = FindUnsafeCharacter(text); at != text.npos) {
    return WithHint(
        MakeError(
            ErrorKind::kInvalidArgument,
            "{}: line {}: byte {} of the file is a control character, or outside ASCII where none can stand",
            source, 1 + std::ranges::count(text.substr(0, at), '\n'), at),
        "characters outside ASCII stand in comments, and in texts of one line with a blank before the quote");
  }
  toml::parse_result parsed = toml::parse(text, source);
  if (parsed) return std::move(parsed).table();
  const toml::parse_error& error = parsed.error();
  return MakeError(ErrorKind::kInvalidArgument, "{}: line {}, column {}: {}", source,
                   error.source().begin.line, error.source().begin.column, error.description());
}

// Base class of readers of one file's tables. Its functions fetch one value each and complain with the
// value's place. It holds a reference to `source`, the file's name; `source` must outlive the reader. One
// thread at a time.
class TomlReader {
 public:
  using Keys = std::vector<std::string_view>;

  explicit TomlReader(const std::string& source) : source_(source) {}

 protected:
  // Returns an error with the text "<source>: line L, column C: <what>".
  tl::unexpected<Error> Complain(const toml::source_position& at, const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}, column {}: {}", source_, at.line, at.column,
                     what);
  }

  // Fails at the first key of `table` that is not in `known`, so that a mistyped key is not ignored.
  Status OnlyKeys(const toml::table& table, const Keys& known) const {
    for (const auto& [key, value] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      return Complain(key.source().begin, fmt::format("unknown key '{}'", key.str()));
    }
    return {};
  }

  // Returns a required integer in [least, most]. A floating-point value is refused even if it is whole.
  Result<int64_t> Integer(const toml::table& table, std::string_view key, int64_t least, int64_t most) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return Complain(table.source().begin, fmt::format("key '{}' is missing", key));
    const auto value = node->value_exact<int64_t>();
    if (value && *value >= least && *value <= most) return *value;
    return Complain(node->source().begin,
                    fmt::format("'{}' must be an integer from {} to {}", key, least, most));
  }

  // Returns an integer as Integer does; if the key is missing, returns `fallback` without checking it.
  Result<int> OptionalInteger(const toml::table& table, std::string_view key, int64_t least, int64_t most,
                              int fallback) const {
    if (!table.contains(key)) return fallback;
    DYNAMICCL_TRY(const int64_t value, Integer(table, key, least, most));
    return static_cast<int>(value);
  }

  // Returns a number, integer or not. The key must exist: callers check that first.
  Result<double> Number(const toml::table& table, std::string_view key) const {
    const toml::node* const node = table.get(key);
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (value) return *value;
    return Complain(node->source().begin, fmt::format("'{}' must be a number", key));
  }

  // Calls `read` for each table of an array of tables ([[key]]), in the file's order, until one fails. A
  // missing key is an empty array.
  Status ForEachTable(const toml::table& table, std::string_view key,
                      const std::function<Status(const toml::table&)>& read) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return {};
    if (!node->is_array_of_tables()) {
      return Complain(node->source().begin, fmt::format("'{}' must be an array of tables", key));
    }
    for (const toml::node& entry : *node->as_array()) DYNAMICCL_CHECK_OK(read(*entry.as_table()));
    return {};
  }

  // Returns a required text.
  Result<std::string> Text(const toml::table& table, std::string_view key) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return Complain(table.source().begin, fmt::format("key '{}' is missing", key));
    if (auto value = node->value_exact<std::string>()) return *std::move(value);
    return Complain(node->source().begin, fmt::format("'{}' must be a text", key));
  }

 private:
  const std::string& source_;
};

}  // namespace dynamiccl
