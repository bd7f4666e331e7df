// SPDX-License-Identifier: Apache-2.0
// Blanks are spaces, tabs and carriage returns, so lines of Windows files need no care.
#include "traces/import/text_fields.h"

#include <algorithm>

namespace dynamiccl {
namespace {

constexpr std::string_view kBlanks = " \t\r";
// Number of fields for which memory is reserved: enough for the lines of all formats, so that the fields of a
// line take one allocation.
constexpr size_t kUsualFields = 24;

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The end of the field at the line's start: a comma outside quotes, or the line's end.
size_t FieldEnd(std::string_view line) {
  const size_t comma = std::min(line.find(','), line.size());
  const size_t first = line.find_first_not_of(kBlanks);
  if (first >= comma || line[first] != '"') return comma;
  const size_t quote = line.find('"', first + 1);
  return quote == std::string_view::npos ? line.size() : std::min(line.find(',', quote), line.size());
}

}  // namespace

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> CommaFields(std::string_view line) {
  std::vector<std::string_view> fields;
  fields.reserve(kUsualFields);
  for (;;) {
    const size_t end = FieldEnd(line);
    std::string_view field = Trimmed(line.substr(0, end));
    if (field.size() > 1 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    fields.push_back(field);
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  words.reserve(kUsualFields);
  for (size_t at = 0; at < line.size();) {
    if (IsBlank(line[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < line.size() && !IsBlank(line[at])) ++at;
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

}  // namespace dynamiccl
