// SPDX-License-Identifier: Apache-2.0
#include "src/decision/agreed_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace dynamiccl {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

bool MayStandInAName(char each) {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') ||
         each == '.' || each == '-' || each == '_';
}

}  // namespace

MemoryPressure MemoryPressureIn(const AgreedValues& values) {
  const auto found = values.find(kMemoryPressureValue);
  const bool is_level =
      found != values.end() && found->second >= 0 && found->second < int64_t{kMemoryPressures};
  return is_level ? static_cast<MemoryPressure>(found->second) : MemoryPressure::kUnknown;
}

bool IsValueName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxValueNameBytes &&
         std::all_of(name.begin(), name.end(), MayStandInAName);
}

Result<ProposedValue> ParseValue(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos) return MakeError(ErrorKind::kInvalidArgument, "'{}' is not NAME=VALUE", text);
  const std::string_view name = Trimmed(text.substr(0, equals));
  const std::string_view number = Trimmed(text.substr(equals + 1));
  if (!IsValueName(name)) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "'{}' is no name of a value: 1 to {} letters, digits, '.', '-' and '_'", name,
                     kMaxValueNameBytes);
  }
  ProposedValue parsed{std::string(name), 0};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), parsed.value);
  if (error != std::errc() || end != number.data() + number.size()) {
    return MakeError(ErrorKind::kInvalidArgument, "'{}' for {} is no whole number of 64 bits", number, name);
  }
  return parsed;
}

Result<AgreedValues> ParseValues(std::string_view text, const std::string& path) {
  AgreedValues values;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    auto parsed = ParseValue(line);
    if (!parsed) return Wrap(parsed.error(), fmt::format("{}:{}", path, number));
    values[parsed->name] = parsed->value;
    if (values.size() > kMaxAgreedValues) {
      return MakeError(ErrorKind::kInvalidArgument, "{}:{}: more than {} values", path, number,
                       kMaxAgreedValues);
    }
  }
  return values;
}

std::string ValuesText(const AgreedValues& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("{}={}\n", name, value);
  return text;
}

}  // namespace dynamiccl
