// SPDX-License-Identifier: Apache-2.0
// Blanks are spaces, tabs and carriage returns, so lines of Windows files need no care.
#include "traces/import/text_fields.h"

#include <algorithm>

namespace dynamiccl {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// The end of the field at the line's start: a comma outside quotes, or the line's end.
size_t FieldEnd(std::string_view line) {
  const size_t first = line.find_first_not_of(kBlanks);
  if (first == std::string_view::npos || line[first] != '"') return std::min(line.find(','), line.size());
  const size_t quote = line.find('"', first + 1);
  return quote == std::string_view::npos ? line.size() : std::min(line.find(',', quote), line.size());
}

}  // namespace

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> CommaFields(std::string_view line) {
  std::vector<std::string_view> fields;
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
  size_t begin = 0;
  while ((begin = line.find_first_not_of(kBlanks, begin)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

}  // namespace dynamiccl
