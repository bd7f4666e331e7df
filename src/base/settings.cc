// SPDX-License-Identifier: Apache-2.0
// Reads the table of settings.def and the environment. See settings.h.
#include "src/base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "src/base/nearest_name.h"

namespace dynamiccl {
namespace {

constexpr SettingRow kRows[] = {
#define DYNAMICCL_SETTING(id, name, type, value, sentence) \
  {Setting::id, name, SettingType::type, value, sentence},
#include "src/base/settings.def"
#undef DYNAMICCL_SETTING
};

constexpr const char* kPrefixes[] = {"DYNAMICCL_", "HOSTCCL_"};

std::string NearestSetting(std::string_view name) {
  std::vector<std::string_view> known;
  for (const SettingRow& row : kRows) known.push_back(row.name);
  return NearestName(name, known);
}

bool IsKnown(std::string_view name) {
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [&](const SettingRow& row) { return name == row.name; });
}

bool HasOurPrefix(std::string_view name) {
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::span<const SettingRow> AllSettings() {
  return kRows;
}
const SettingRow& Row(Setting setting) {
  return kRows[static_cast<size_t>(setting)];
}

std::string TextSetting(Setting setting) {
  const char* value = ::secure_getenv(Row(setting).name);
  return value != nullptr ? value : Row(setting).default_value;
}

Result<int64_t> IntegerSetting(Setting setting) {
  const std::string text = TextSetting(setting);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    return MakeError(ErrorKind::kInvalidArgument, "{}='{}' is not a whole number", Row(setting).name, text);
  }
  return value;
}

Result<bool> BoolSetting(Setting setting) {
  const std::string text = TextSetting(setting);
  if (text == "0" || text == "1") return text == "1";
  return MakeError(ErrorKind::kInvalidArgument, "{}='{}' is neither 0 nor 1", Row(setting).name, text);
}

std::vector<UnknownSetting> UnknownSettings(const char* const* environment) {
  std::vector<UnknownSetting> unknown;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (HasOurPrefix(name) && !IsKnown(name)) unknown.push_back({std::string(name), NearestSetting(name)});
  }
  return unknown;
}

std::string HostName() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

std::string ExpandPath(const std::string& pattern, int rank) {
  return ExpandPath(pattern, rank, ::getpid());
}

std::string ExpandPath(const std::string& pattern, int rank, int process_id) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h')
      path += HostName();
    else if (next == 'p')
      path += std::to_string(process_id);
    else if (next == 'r')
      path += std::to_string(rank);
    else
      path += pattern[i];
    if (next == 'h' || next == 'p' || next == 'r') ++i;
  }
  return path;
}

}  // namespace dynamiccl
