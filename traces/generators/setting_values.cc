// SPDX-License-Identifier: Apache-2.0
// Texts are checked once, when a table is read, so that later look-ups cannot fail. An error gives the value,
// what was expected, and the setting's sentence as a hint.
#include "traces/generators/setting_values.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <optional>

namespace dynamiccl {
namespace {

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// True if `text` is one of the comma-separated choices.
bool IsChoice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const size_t comma = std::min(choices.find(','), choices.size());
    if (choices.substr(0, comma) == text) return true;
    choices.remove_prefix(std::min(comma + 1, choices.size()));
  }
  return false;
}

// Returns a description of the values that the row allows; empty if `text` is one of them.
std::string Expected(const GeneratorSetting& row, std::string_view text) {
  switch (row.kind) {
    case SettingKind::kInteger: {
      const auto value = ParseInteger(text);
      if (value && *value >= row.least && *value <= row.most) return "";
      return fmt::format("a whole number from {} to {}", row.least, row.most);
    }
    case SettingKind::kFlag:
      return text == "true" || text == "false" ? "" : "true or false";
    case SettingKind::kDataType:
      return (text.empty() && row.standard.empty()) || ParseDataType(text)
                 ? ""
                 : "a type: float32, float16, bfloat16 ...";
    case SettingKind::kChoice:
      return IsChoice(row.choices, text) ? "" : fmt::format("one of {}", row.choices);
  }
  return "a value";
}

// The names of all rows, for messages.
std::string Names(std::span<const GeneratorSetting> rows) {
  std::string names;
  for (const GeneratorSetting& row : rows) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

}  // namespace

Result<SettingTexts> ParseSettingTexts(std::string_view text, std::string_view where) {
  SettingTexts texts;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: '{}' is not name=value", where, item),
                      "write name=value, several with commas between");
    }
    const bool is_new =
        texts.emplace(std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))).second;
    if (!is_new) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{}: '{}' is given twice", where, item.substr(0, equals)),
          "name every setting once");
    }
    text.remove_prefix(std::min(item.size() + 1, text.size()));
  }
  return texts;
}

Result<SettingValues> SettingValues::Parse(std::span<const GeneratorSetting> rows, const SettingTexts& texts,
                                           std::string_view where) {
  SettingValues values;
  for (const GeneratorSetting& row : rows) {
    const auto given = texts.find(row.name);
    const std::string text = given == texts.end() ? std::string(row.standard) : given->second;
    if (const std::string expected = Expected(row, text); !expected.empty()) {
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{}: {}={}: not {}", where, row.name, text, expected),
          std::string(row.sentence));
    }
    values.values_.emplace(row.name, text);
  }
  for (const auto& [name, text] : texts) {
    if (values.values_.contains(name)) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: no setting '{}'", where, name),
                    "one of: " + Names(rows));
  }
  return values;
}

const std::string& SettingValues::Text(std::string_view name) const {
  const auto found = values_.find(name);
  assert(found != values_.end() && "a generator asks only for rows of its own table");
  return found->second;
}

int64_t SettingValues::Integer(std::string_view name) const {
  return ParseInteger(Text(name)).value();
}

bool SettingValues::Flag(std::string_view name) const {
  return Text(name) == "true";
}

DataType SettingValues::Type(std::string_view name) const {
  const std::string& text = Text(name);
  return ParseDataType(text.empty() ? Text("dtype") : text).value();
}

const std::string& SettingValues::Choice(std::string_view name) const {
  return Text(name);
}

}  // namespace dynamiccl
