// SPDX-License-Identifier: Apache-2.0
// TOML files read strictly: every complaint names the place in the file. Include it in few files: toml++
// takes seconds to compile.
#pragma once

#define TOML_EXCEPTIONS 0
// toml++ 3.3 asserts what damaged files break and what it reports right after; with NDEBUG it tells Clang to
// assume it. Neither may end a job.
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

// The line of the first character outside ASCII that stands neither in a text of one line nor in a comment;
// 0: there is none. TOML has no such key, but toml++ 3.3 looks it up in tables of keys to come, and some
// characters lead it to where its authors promise the compiler that nothing leads. Likewise the line of a
// control character, which TOML has nowhere: behind one toml++ may take for a key what looks like a text.
inline int LineOfForeignKey(std::string_view text) {
  int line = 1;
  char inside = 0;  // the quote that ends the text, or '#'
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      inside = 0;
    } else if ((static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
      return line;
    } else if (inside == '"' && c == '\\') {
      ++i;
    } else if (inside == 0) {
      if (static_cast<unsigned char>(c) >= 0x80 && !(i < 3 && text.starts_with("\xef\xbb\xbf"))) return line;
      if (c == '"' || c == '\'' || c == '#') inside = c;
    } else if (c == inside && c != '#') {
      inside = 0;
    }
  }
  return 0;
}

inline Result<toml::table> ParseToml(std::string_view text, const std::string& source) {
  if (const int line = LineOfForeignKey(text); line != 0)
    return MakeError(ErrorKind::kInvalidArgument,
                     "{}: line {}: a character outside ASCII that is in no quotes, or a control character",
                     source, line);
  toml::parse_result parsed = toml::parse(text, source);
  if (parsed) return std::move(parsed).table();
  const toml::parse_error& error = parsed.error();
  return MakeError(ErrorKind::kInvalidArgument, "{}: line {}, column {}: {}", source,
                   error.source().begin.line, error.source().begin.column, error.description());
}

// What readers of one file's tables build on. `source` stands in errors and must outlive the reader.
class TomlReader {
 public:
  using Keys = std::vector<std::string_view>;

  explicit TomlReader(const std::string& source) : source_(source) {}

 protected:
  tl::unexpected<Error> Complain(const toml::source_position& at, const std::string& what) const {
    return MakeError(ErrorKind::kInvalidArgument, "{}: line {}, column {}: {}", source_, at.line, at.column,
                     what);
  }

  Status OnlyKeys(const toml::table& table, const Keys& known) const {
    for (const auto& [key, value] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      return Complain(key.source().begin, fmt::format("unknown key '{}'", key.str()));
    }
    return {};
  }

  Result<int64_t> Integer(const toml::table& table, std::string_view key, int64_t least, int64_t most) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return Complain(table.source().begin, fmt::format("key '{}' is missing", key));
    const auto value = node->value_exact<int64_t>();
    if (value && *value >= least && *value <= most) return *value;
    return Complain(node->source().begin,
                    fmt::format("'{}' must be an integer from {} to {}", key, least, most));
  }

  // Present or not; then `fallback`.
  Result<int> OptionalInteger(const toml::table& table, std::string_view key, int64_t least, int64_t most,
                              int fallback) const {
    if (!table.contains(key)) return fallback;
    DYNAMICCL_TRY(const int64_t value, Integer(table, key, least, most));
    return static_cast<int>(value);
  }

  Result<double> Number(const toml::table& table, std::string_view key) const {
    const toml::node* const node = table.get(key);
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (value) return *value;
    return Complain(node->source().begin, fmt::format("'{}' must be a number", key));
  }

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
